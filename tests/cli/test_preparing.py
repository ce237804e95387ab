"""What `prepare` says while it writes files and at its end."""

import io
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.cli._preparing import FileLines, end_lines
from harness.record.tfrecords import Feature, Features, Preparation, ReadingSpeed, Runners, Shard, WayCost, WrittenShard
from harness.spec import expand, sweep_from
from harness.spec.calls import split_values
from harness.trial.engines import catalogue_of

LABEL = Feature(feature="label", encoding="int64")
FEATURES = Features(
    kind="images",
    input=Feature(feature="image", encoding="image", shape=[None, None, 3]),
    target=LABEL,
    examples=1000,
    digest="3f2a",
    shards=[Shard(file=str(k), examples=500, bytes=2_000_000, sha256="0") for k in range(2)],
)


def tokens(count: int) -> Feature:
    return Feature(feature="tokens", encoding="int64", shape=[count])


def said(
    source: list[float],
    files: list[float],
    written: int = 1000,
    earlier: Sequence[Runners] = (),
    target: str = "files",
    wall_s: float = 20.0,
    **ways: list[float],
) -> list[str]:
    """The end of a preparation that took `wall_s`, of what is read at these speeds."""
    read = {"source_read": speeds(source), "files_read": speeds(files)}
    times = {"wall_s": wall_s, "cpu_s": 31.25, "written": written, "bytes_in": 3_900_000, "bytes_out": 4_000_000}
    who = {
        "source": "a:b",
        "harness_version": "1",
        "by": "local",
        "processes": 2,
        "created_utc": "now",
        "earlier": earlier,
    }
    costs = {way: WayCost(wall_s=taken, cpu_s=[2 * one for one in taken]) for way, taken in ways.items()}
    features = FEATURES.model_copy(update={"preparation": Preparation(**who, **times, **read, ways=costs)})
    return end_lines(Path(target), features, new=True)


def speeds(taken: list[float]) -> ReadingSpeed:
    return ReadingSpeed(examples=64, examples_per_s=taken)


def test_the_end_says_what_there_is_what_it_took_and_how_to_train_on_it() -> None:
    lines = said([100, 120, 110], [100, 120, 110])
    assert lines[:2] == [
        "files: 1,000 examples in 2 files, 4.0 MB, digest 3f2a",
        "20.0 s, 31.2 s of processor time (local, 2 processes, their start included): "
        "50 examples/s, 3.9 MB in, 4.0 MB out",
    ]
    assert lines[-1] == "train on it: python -m harness sweep --data tfrecord:files"


def test_a_source_that_gives_an_example_now_and_then_is_not_said_to_give_none() -> None:
    _, took, read, *_ = said([0.2, 0.2, 0.2], [0.3, 0.3, 0.3], wall_s=4000.0)
    assert ": 0.25 examples/s, " in took
    assert read.startswith("reading: source 0.20 examples/s, files 0.30 (")


def test_a_time_of_several_calls_is_told_with_who_ran_the_processes_of_each() -> None:
    _, took, *_ = said([1], [1], earlier=[Runners(by="dask", processes=8)])
    assert "(dask, 8 processes, then local, 2 processes, their start included)" in took


def test_what_nobody_has_kept_the_cost_of_is_not_said_to_have_cost_nothing() -> None:
    _, *lines, _ = said([90, 100, 110], [190, 200, 210], wall_s=0.0)
    assert [line.partition(":")[0] for line in lines] == [
        "reading",
        "a pass over all examples takes 5.0 s less from the files",
    ]


def test_the_command_to_train_is_one_that_a_shell_takes() -> None:
    assert shlex.split(said([1], [1], target="my data/ph (1)")[-1])[-1] == "tfrecord:my data/ph (1)"


@pytest.mark.parametrize(
    ("features", "model"),
    [
        (FEATURES, "mnist_cnn"),
        (Features(kind="text", input=tokens(65), target=LABEL, vocabulary=20_000), "lstm(vocabulary=20000)"),
        (Features(kind="text", input=tokens(9), target=LABEL), "lstm(tokens=9)"),
        (Features(kind="text", input=tokens(9), vocabulary=300), "gpt(tokens=8,vocabulary=300)"),
        (Features(kind="table", input=tokens(9), target=LABEL), "mlp"),
        (
            Features(kind="categories", input=tokens(65), target=LABEL, vocabulary=70),
            "recommender(tables=65,rows=70)",
        ),
        (Features(kind="own", input=tokens(9), target=LABEL), "package.module:function"),
    ],
)
def test_the_command_to_train_has_a_model_that_takes_such_examples(
    tmp_path: Path, features: Features, model: str
) -> None:
    (tmp_path / "0").write_bytes(b"1234")
    there = features.model_copy(update={"shards": [Shard(file="0", examples=1, bytes=4, sha256="")], "examples": 1})
    (tmp_path / "features.json").write_text(there.model_dump_json())
    told, _, command = end_lines(tmp_path, there, new=False)[-1].partition(": python -m harness sweep ")
    assert told == ("train a model of your own on it" if features.kind == "own" else "train on it")
    flags = shlex.split(command)
    asked = {flag.removeprefix("--"): split_values(value) for flag, value in zip(flags[::2], flags[1::2], strict=True)}
    assert {cell.model for cell in expand(sweep_from({"strategy": ["none"], **asked}), catalogue_of()).cells} == {model}


@pytest.mark.parametrize(
    ("source", "files", "written", "says"),
    [
        # a pass takes 10 s from the source and 5 s from the files, and preparing took 20 s
        (
            [90, 100, 110],
            [190, 200, 210],
            1000,
            "where reading is the limit, the time to prepare is won back after 4 ",
        ),
        ([90, 100, 110], [190, 200, 210], 500, "a pass over all examples takes 5.0 s less from the files"),
        ([90, 100, 195], [190, 200, 210], 1000, "no difference was seen: preparing is not worth it for the "),
        (
            [190, 200, 210],
            [90, 100, 110],
            1000,
            "the source is read faster: preparing is not worth it for the ",
        ),
    ],
)
def test_whether_it_pays_is_told_only_where_all_turns_of_one_were_faster(
    source: list[float], files: list[float], written: int, says: str
) -> None:
    read, verdict = said(source, files, written)[2:4]
    assert read.startswith(f"reading: source {source[1]:,.0f} examples/s, files {files[1]:,.0f} (")
    assert "(the first 64 examples, 3 times each in turns, by one process)" in read
    assert verdict.startswith(says)


@pytest.mark.parametrize(("wall_s", "passes"), [(3.0, "1 pass"), (21.0, "5 passes")])
def test_the_pass_in_which_the_rest_is_won_back_counts_as_a_whole_one(wall_s: float, passes: str) -> None:
    verdict = said([90, 100, 110], [190, 200, 210], wall_s=wall_s)[3]
    assert verdict == f"where reading is the limit, the time to prepare is won back after {passes}"


def test_of_several_ways_it_is_said_what_each_took_and_which_takes_the_least_time() -> None:
    lines = said([90, 100, 110], [190, 200, 210], beam=[41, 40, 45, 44], local=[20, 19, 22, 21])
    assert lines[1:4] == [
        "beam: 42.5 s [40.0 – 45.0], 85.0 s of processor time",
        "local: 20.5 s [19.0 – 22.0], 41.0 s of processor time",
        "which takes the least time: it is local (2 processes, their start included, 4 turns each, the same bytes)",
    ]
    assert lines[5].startswith("where reading is the limit, the time to prepare is won back after 4 passes")


def test_of_ways_whose_turns_overlap_it_is_not_said_which_takes_the_least_time() -> None:
    lines = said([1], [1], local=[20, 19, 22, 21], dask=[24, 22, 25, 26], beam=[40, 41, 42, 43])
    assert lines[4].startswith("which takes the least time: no difference was seen between local and dask (2 process")


def test_how_many_examples_were_read_to_count_them_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now, out = [0.0], io.StringIO()
    monkeypatch.setattr("harness.cli._preparing.time.monotonic", lambda: now[0])
    lines = FileLines(out)
    for now[0], examples in ((1.0, 5), (11.0, 1200), (15.0, 1300), (30.0, 2500)):
        lines.read(examples)
    told = [f"{read} examples read so far, to know how many there are and which\n" for read in ("1,200", "2,500")]
    assert out.getvalue() == "".join(told)


def test_in_a_pipe_each_file_is_a_line_without_control_characters() -> None:
    out = io.StringIO()
    lines = FileLines(out)
    lines.begun(1000, 4, 2)
    for number in range(2):
        lines.file(WrittenShard(file=str(number), examples=250, bytes=1, sha256="", bytes_in=1))
    assert out.getvalue() == "1,000 examples in 4 files, 2 of them whole already\n[3/4]\n[4/4]\n"


def test_on_a_terminal_one_line_is_written_anew_and_ends_with_the_last_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    lines = FileLines(out)
    lines.begun(1000, 2, 0)
    for number in range(2):
        lines.file(WrittenShard(file=str(number), examples=500, bytes=1, sha256="", bytes_in=1))
    assert out.getvalue() == "1,000 examples in 2 files\n\r\x1b[2K[1/2]\r\x1b[2K[2/2]\n"
