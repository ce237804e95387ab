"""What `prepare` does with its target before any process writes into it."""

import contextlib
import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from harness.errors import HarnessError, Interrupted, StorageError, UsageError
from harness.files import LONGEST_LOG
from harness.protocol.preparing import SIGN, ShardPlan
from harness.record.files import _new_file_beside
from harness.record.tfrecords import FEATURES, Feature, Features, Runners, WrittenShard
from harness.run.data import PREPARE_LIMIT_S
from harness.run.interrupts import Interrupts
from harness.run.preparing import prepare as preparing
from harness.run.preparing import processes
from harness.run.preparing.asked import AskedFiles, FilesListener
from harness.run.preparing.plan import PLAN, TRIED_IN, PreparePlan, as_read
from harness.run.preparing.prepare import _prepare, locked, prepare
from harness.run.preparing.processes import Writers
from harness.spec.values import RunBy
from tests.preloaded import handed_in
from tests.run.preparing.written import Played, called, kept_in


def test_what_a_call_that_was_killed_has_left_of_its_first_file_is_removed_and_a_users_file_is_not(
    tmp_path: Path,
) -> None:
    _, descriptor = _new_file_beside(tmp_path / PLAN)
    os.close(descriptor)
    (tmp_path / ".00001-of-00004.tfrecord.gz.4711.part").touch()
    with locked(tmp_path):
        called(tmp_path, most=4)
    assert {path.name for path in tmp_path.glob(".*")} == set()
    mine = (".movie.part", ".00001-of-00004.tfrecord.part", ".theirs.tmp")
    for name in mine:
        (tmp_path / name).touch()
    (linked := tmp_path / f".{'0' * 16}.tmp").symlink_to(tmp_path / mine[0])
    with locked(tmp_path):
        called(tmp_path, most=4)
    assert {path.name for path in tmp_path.glob(".*")} == {*mine, linked.name}


def test_a_folder_of_somebody_elses_is_refused_and_no_file_of_it_is_gone(tmp_path: Path) -> None:
    _, descriptor = _new_file_beside(tmp_path / PLAN)
    os.close(descriptor)
    for name in (".theirs.tmp", ".movie.part", ".00001-of-00004.tfrecord.4711.part"):
        (tmp_path / name).touch()
    before = {path.name for path in tmp_path.iterdir()}
    with locked(tmp_path), pytest.raises(UsageError, match=r"has files that prepare has not made, .*'\.movie\.part'"):
        called(tmp_path, most=4)
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_function_with_its_parameters_in_another_order_is_the_same_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called(tmp_path, most=4, source="my:examples(b=2,a=1)")  # as an earlier version has kept it
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(preparing, "Writers", lambda *_: Played(tmp_path, 4))
    for source in ("my:examples(b=2, a=1)", "my:examples(a=1,b=2)"):
        _, written = prepare(AskedFiles(source, tmp_path, tmp_path), FilesListener())
        assert not written
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    with pytest.raises(UsageError, match=r"its source is my:examples\(a=1,b=2\), and my:examples\(a=1,b=3\) is asked"):
        prepare(AskedFiles("my:examples(b=3,a=1)", tmp_path, tmp_path), FilesListener())


def asked_by(target: Path, count: int) -> Writers:
    """Writers of so many files that have two processes."""
    return Writers(AskedFiles("my:examples", target, target, shards=count, processes=2), target, Interrupts())


def test_files_that_are_waited_for_are_looked_for_by_the_next_of_each_process_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def kept(path: Path, _: Any) -> WrittenShard | None:
        opened.append(path.name)
        one = WrittenShard(file=path.name, examples=1, bytes=1, sha256="", bytes_in=1)
        return one if path.name in (".0.json", ".1.json", ".50.json") else None

    found: list[str] = []
    of = FilesListener()
    monkeypatch.setattr(of, "file", lambda shard: found.append(shard.file))
    monkeypatch.setattr(processes, "whole_at", kept)
    writers: Any = asked_by(tmp_path, 100)
    monkeypatch.setattr(writers, "_send", lambda *_: 0)
    monkeypatch.setattr(writers, "_wait", lambda _, look: (look(), look()))
    feature = Feature(feature="input", encoding="int64", shape=[3])
    plan = PreparePlan(
        input=feature, target=feature.model_copy(update={"feature": "y"}), source="my:examples", count=100
    )
    writers.write(plan, [ShardPlan(file=str(k), first=k, examples=1) for k in range(100)], of, lambda: None)
    assert found == [".0.json", ".1.json", ".50.json"]
    assert opened == [".0.json", ".1.json", ".2.json", ".50.json", ".51.json", ".2.json", ".51.json"]


@pytest.mark.parametrize("step", [1, -1], ids=["a clock that goes on", "a clock that is set back"])
def test_it_is_told_how_many_examples_were_read_and_a_process_that_reads_no_further_ends_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    now, read = [0.0], list[int]()
    signs = iter([(1.0, 3), (90.0, 4), (200.0, 900), (321.2, None)])

    def passes(_: float) -> None:
        now[0], done = next(signs)
        if done is not None:
            sign = tmp_path / SIGN.format(0, 4711)
            sign.write_text(str(done))
            os.utime(sign, ns=(1000 + step * done,) * 2)

    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=passes))
    writers: Any = asked_by(tmp_path, 1)
    monkeypatch.setattr(writers, "_send", lambda *_: 0)
    with pytest.raises(UsageError) as raised:
        writers.answer("describe", read.append)
    assert read == [3, 4, 900]
    assert str(raised.value) == (
        "source: 'my:examples' has given no further example within 120 s; mend it, or allow more seconds by --timeout"
    )


def test_a_source_that_gives_no_example_yet_may_take_as_long_as_a_sweep_allows_for_making_data_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    now = SimpleNamespace(monotonic=lambda: (PREPARE_LIMIT_S - 1) * len(slept), sleep=slept.append)
    monkeypatch.setattr(processes, "time", now)
    writers: Any = asked_by(tmp_path, 1)
    monkeypatch.setattr(writers, "_send", lambda *_: 0)
    with pytest.raises(UsageError, match="within 3600 s"):
        writers.answer("describe")
    assert len(slept) == 2


def test_what_a_source_prints_without_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: Any = asked_by(tmp_path, 1)

    def passes(_: float) -> None:
        with (tmp_path / processes.LOG).open("ab") as log:
            log.write(b"." * (LONGEST_LOG // 2))

    now = SimpleNamespace(monotonic=lambda: writers._left_out, sleep=passes)  # time passes once something is left out
    monkeypatch.setattr(processes, "time", now)
    writers._asked = replace(writers._asked, timeout_s=1.0)
    monkeypatch.setattr(processes, "PREPARE_LIMIT_S", 1.0)
    monkeypatch.setattr(writers, "_send", lambda *_: 0)
    with pytest.raises(UsageError, match="within 1 s"):
        writers.answer("describe")
    assert b"bytes of this log are left out" in (tmp_path / processes.LOG).read_bytes()


def test_more_seconds_are_allowed_before_the_first_example_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    now = SimpleNamespace(monotonic=lambda: PREPARE_LIMIT_S * len(slept), sleep=slept.append)
    monkeypatch.setattr(processes, "time", now)
    writers: Any = asked_by(tmp_path, 1)
    writers._asked = replace(writers._asked, timeout_s=3 * PREPARE_LIMIT_S)
    monkeypatch.setattr(writers, "_send", lambda *_: 0)
    with pytest.raises(UsageError, match="within 10800 s"):
        writers.answer("describe")
    assert len(slept) == 4


@pytest.mark.slow
def test_a_function_that_sleeps_at_an_example_ends_in_one_line(tmp_path: Path) -> None:
    hangs = AskedFiles("tests.engines.tensorflow.own_inputs:hangs", tmp_path / "files", tmp_path, timeout_s=2.0)
    with handed_in(), pytest.raises(UsageError, match="has given no further example within 2 s; mend it, or allow"):
        prepare(hangs, FilesListener())
    assert not (tmp_path / "files").exists()


def test_no_process_that_writes_files_takes_a_card_that_the_user_has_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[dict[str, str]] = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(processes.subprocess, "Popen", lambda *_, env, **__: started.append(env))
    asked_by(tmp_path, 1)._start()
    assert [env["CUDA_VISIBLE_DEVICES"] for env in started] == ["-1"]


@pytest.mark.parametrize("whole", [2, 4])
def test_files_of_other_examples_than_the_source_gives_now_are_neither_kept_nor_mixed_with_new_ones(
    tmp_path: Path, whole: int
) -> None:
    with contextlib.suppress(HarnessError):
        called(tmp_path, most=whole)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UsageError) as refused:
        called(tmp_path, most=4, state="changed")
    assert str(refused.value) == (
        f"target: '{tmp_path}' holds another data set: 'my:examples' has other examples, or files of other names, "
        "sizes or times, than when it was prepared; name a new folder, or remove it"
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    how = called(tmp_path, most=4).preparation
    assert how is not None
    assert how.state == "as ever"


@pytest.mark.parametrize(("whole", "kept"), [(2, PLAN), (4, FEATURES)])
def test_what_an_earlier_version_has_prepared_without_a_state_goes_on_without_one(
    tmp_path: Path, whole: int, kept: str
) -> None:
    with contextlib.suppress(HarnessError):
        called(tmp_path, most=whole)
    there = (tmp_path / kept).read_text()
    (tmp_path / kept).write_text(re.sub(r'"state": *"as ever",', "", there))
    assert (tmp_path / kept).read_text() != there
    (tmp_path / "00003-of-00004.tfrecord").unlink(missing_ok=True)
    how = called(tmp_path, most=4, state="any").preparation
    assert how is not None
    assert how.state == ""


def test_a_preparation_that_went_on_twice_has_cost_what_its_three_calls_have(tmp_path: Path) -> None:
    computed, waited = time.process_time(), time.monotonic()
    for _ in range(2):
        with pytest.raises(HarnessError, match="broken"):
            called(tmp_path, most=1)
    made = called(tmp_path, most=4).preparation
    computed, waited = time.process_time() - computed, time.monotonic() - waited
    assert made is not None
    assert (made.written, made.bytes_in, made.bytes_out) == (8, 4 * 7, 4 * 4)
    assert 40 <= made.cpu_s <= 40 + computed
    assert 0 < made.wall_s <= waited
    assert not (tmp_path / PLAN).exists()


def test_who_wrote_the_files_of_each_call_is_kept_in_turn(tmp_path: Path) -> None:
    stopped: list[tuple[RunBy, int, int]] = [("local", 2, 1), ("local", 2, 1), ("beam", 3, 0)]
    for by, count, most in stopped:
        with pytest.raises(HarnessError, match="broken"):
            called(tmp_path, most, by=by, processes=count)
    made = called(tmp_path, most=4, by="dask", processes=8).preparation
    assert made is not None
    assert (made.by, made.processes, made.earlier) == ("dask", 8, [Runners(by="local", processes=2)])
    assert kept_in(tmp_path).preparation == made


def test_files_that_a_call_was_killed_after_are_of_its_processes_whoever_finds_them_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as late:
        late.setattr(preparing, "seal", _killed)
        with pytest.raises(Interrupted):
            called(tmp_path, most=4, processes=2)
    made = called(tmp_path, most=4, by="dask", processes=8).preparation
    assert made is not None
    assert (made.by, made.processes, made.earlier) == ("local", 2, [])


def _killed(*_: Any) -> NoReturn:
    raise Interrupted("interrupted")


@pytest.mark.parametrize("late", ["seal", "compared"])
def test_a_call_that_was_stopped_late_says_what_it_cost_and_whether_it_pays_when_it_is_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    def call() -> tuple[Features, bool]:
        played: Any = Played(tmp_path, 4)
        return _prepare(AskedFiles("my:examples", tmp_path, tmp_path, shards=4), played, FilesListener())

    with monkeypatch.context() as stopped:
        stopped.setattr(preparing, late, _killed)
        with pytest.raises(Interrupted):
            call()
    made, new = call()
    assert new
    assert made.preparation is not None
    assert made.preparation.cpu_s >= 40
    assert made.preparation.source_read is not None
    assert call() == (made, False)


TOKENS = {"kind": "text", "vocabulary": 50257, "target": None}


@pytest.mark.parametrize(
    "said", [TOKENS, {**TOKENS, "target": {"feature": "y", "encoding": "int64"}, "classes": 2}], ids=["next", "classes"]
)
def test_what_a_user_has_written_of_how_files_are_read_is_kept_where_one_is_written_again(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    called(tmp_path, most=4)
    kept = json.loads((tmp_path / FEATURES).read_text())
    (tmp_path / FEATURES).write_text(json.dumps(kept | said))
    edited = kept_in(tmp_path)
    (tmp_path / "00003-of-00004.tfrecord").unlink()
    made = called(tmp_path, most=4)
    assert kept_in(tmp_path) == made
    changed = {"preparation": None}
    assert made.model_copy(update=changed) == edited.model_copy(update=changed)
    with pytest.raises(UsageError, match=r"has other examples"):
        called(tmp_path, most=4, state="changed")


def test_a_length_at_which_a_user_has_inputs_cut_off_is_kept_and_another_shape_is_not_taken() -> None:
    one = Feature(feature="words", encoding="int64", shape=[None])
    plain = Features(input={"words": one}, target=Feature(feature="y", encoding="int64"), examples=8)
    cut = plain.model_copy(update={"input": {"words": one.model_copy(update={"most": 512})}})
    assert as_read(cut, plain) == cut
    other = plain.model_copy(update={"input": {"words": one.model_copy(update={"shape": [7]})}})
    assert as_read(cut, other) == other


@pytest.mark.parametrize("name", ["a,b", "a\nb"])
def test_a_folder_that_no_sweep_could_name_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"^target: given '.*', expected a folder that --data can name: without"):
        prepare(AskedFiles("digits", tmp_path / name, tmp_path), FilesListener())
    assert not list(tmp_path.iterdir())


def test_several_ways_write_all_files_in_turns_and_what_each_cost_is_kept(tmp_path: Path, timed: Any) -> None:
    made = timed.call(local=20.0, dask=10.0)
    assert timed.calls == ["local", *["local", "dask", "dask", "local"] * 2]
    how = made.preparation
    assert how.ways["local"].wall_s == [19.0, 18.5, 18.0, 17.5]
    assert how.ways["dask"].wall_s == [9.5, 9.0, 8.5, 8.0]
    assert how.ways["dask"].cpu_s == [40.0] * 4
    assert (how.by, how.wall_s, how.written, how.files_read.examples) == ("dask", 8.5, 8, 1)
    assert Features.model_validate_json((tmp_path / "new" / FEATURES).read_text()) == made
    assert {path.name for path in (tmp_path / "new").iterdir()} == {FEATURES, *(shard.file for shard in made.shards)}
    assert {(tmp_path / "new" / shard.file).read_bytes() for shard in made.shards} == {b"1234"}


def test_ways_that_write_other_bytes_are_refused_and_nothing_is_left(tmp_path: Path, timed: Any) -> None:
    with pytest.raises(
        UsageError, match=r"^source: files of 'digits' by dask have the digest .*; seed what is random$"
    ):
        timed.call(lambda by: by.encode(), local=20.0, dask=10.0)
    assert not (tmp_path / "new").exists()


def test_where_a_way_breaks_nothing_is_left(tmp_path: Path, timed: Any) -> None:
    with pytest.raises(HarnessError, match=r"^broken$"):
        timed.call(most=2, local=20.0, dask=10.0)
    assert not (tmp_path / "new").exists()


def test_several_ways_are_timed_in_a_new_folder_alone_or_one_where_that_was_stopped(tmp_path: Path, timed: Any) -> None:
    (tmp_path / "new" / TRIED_IN).mkdir(parents=True)
    (tmp_path / "new" / TRIED_IN / FEATURES).touch()
    timed.call(local=20.0, dask=10.0)
    with pytest.raises(
        UsageError, match=r"has files, such as '.*', and several ways of --with are timed by writing all"
    ):
        timed.call(local=20.0, dask=10.0)


def test_a_folder_of_somebody_elses_is_refused_before_anything_of_it_is_removed(tmp_path: Path, timed: Any) -> None:
    kept = (tmp_path / "new" / "theirs", tmp_path / "new" / TRIED_IN / "tried")
    for file in kept:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    with pytest.raises(UsageError, match=r"has files, such as 'theirs', and several ways of --with are timed by"):
        timed.call(local=20.0, dask=10.0)
    assert all(file.exists() for file in kept)


def test_one_way_goes_on_where_several_were_stopped(tmp_path: Path) -> None:
    (tmp_path / TRIED_IN).mkdir()
    called(tmp_path, most=4)
    assert not (tmp_path / TRIED_IN).exists()


def test_what_stops_a_way_that_is_timed_says_that_the_command_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = AskedFiles("my:examples", tmp_path, tmp_path, shards=2, by="dask", processes=2, timed=True)
    writers: Any = Writers(asked, tmp_path, Interrupts())

    def broken(*_: Any) -> None:
        raise StorageError("target: no space")

    monkeypatch.setattr(writers, "_send", lambda *_: 0)
    monkeypatch.setattr(writers, "_wait", broken)
    feature = Feature(feature="input", encoding="int64", shape=[3])
    plan = PreparePlan(input=feature, target=feature.model_copy(update={"feature": "y"}), source="my:examples", count=2)
    with pytest.raises(StorageError) as raised:
        writers.write(plan, [ShardPlan(file=str(k), first=k, examples=1) for k in range(2)], FilesListener(), print)
    assert str(raised.value) == "target: no space; 0 of 2 files are whole by dask, and the same command begins anew"
