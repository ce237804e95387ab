"""Whatever is typed, written in a spec, found in a record or sent by a stranger: an exit code, at most one message, no
traceback, no control character, nothing written elsewhere, nothing left running.

The examples are the same in each run, and few: what one of them found becomes a test by its name elsewhere.
"""

import contextlib
import csv
import importlib
import io
import json
import os
import shutil
import socket
import threading
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import psutil
import pytest
from hypothesis import HealthCheck, example, given, settings

from harness.cli import run as main
from harness.errors import HarnessError
from harness.record import RunStore
from harness.run.launchers.agents.handshake import admit, ask
from harness.run.launchers.agents.identity import own_identity
from harness.run.launchers.agents.wire import Wire
from harness.spec.faults import Faults
from harness.spec.sweep import Sweep
from tests.record.examples import cell, failed_trial, manifest, trial

few = settings(
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
HOSTILE = st.sampled_from(
    [
        *("", " ", "-", "--", "0", "-1", "1e308", "nan", "9" * 400, "a" * 5000, "%s", "{}", "x\ny"),
        *("\x1b[2J", "\u202e", "\x07\x9b\r", "\udcff", "\N{SNOWMAN}", "\u2028"),
        *("/dev/zero", "/dev/full", "..", "../..", "/", "run.json", "latest"),
        *("a,b;c", "a=b", "a:b", ":", "tfds:", "none", "mirrored", "1,2", "true", "batch:2,model:2", "rate=1gbit"),
    ]
)
TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
TEXT = HOSTILE | st.text(max_size=12)
VALUE: st.SearchStrategy[Any] = st.recursive(
    TEXT | st.integers() | st.floats() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)
READING = ("show", "export", "list", "report", "history", "compare")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a run in it, in which the verbs are called."""
    folder = tmp_path_factory.mktemp("fuzz") / "place"
    with RunStore.create(folder / "results", manifest(cells=[cell(), cell(replicas=3, global_batch_size=96)])) as store:
        for block in range(3):
            store.append(trial(block))
        store.append(failed_trial(3))
    with contextlib.chdir(folder):
        yield folder


def files(folder: Path) -> dict[str, bytes]:
    """What is in the folder and beside it: `../name` is outside."""
    there = (path for path in folder.parent.rglob("*") if path.is_file())
    return {os.path.relpath(path, folder): path.read_bytes() for path in there}


def holds(place: Path, arguments: list[str], may_write: Callable[[str], bool] = lambda _: False) -> int:
    """Call a verb, check what is promised of every call; its exit code."""
    before, threads, children = files(place), threading.active_count(), psutil.Process().children()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    said = [line for line in err.getvalue().splitlines() if line.startswith("harness: ") and "left out" not in line]
    assert code in (0, 1, 2, 3, 4)
    assert len(said) == (code in (2, 4)), (arguments, code, said)
    for text in (out.getvalue(), err.getvalue()):
        assert "Traceback" not in text
        assert not [letter for letter in text if unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t"]
        assert not set(TURNING) & set(text)
    assert max(map(len, said), default=0) < 5000
    after = files(place)
    assert {name for name in before | after if before.get(name) != after.get(name) and not may_write(name)} == set()
    assert threading.active_count() <= threads
    assert set(psutil.Process().children()) <= set(children)
    return code


@few
@given(
    st.sampled_from(["sweep", "faults", "swep", ""]),
    st.dictionaries(st.sampled_from(sorted({*Sweep.model_fields, *Faults.model_fields})), TEXT, max_size=3),
    st.lists(TEXT, max_size=1),
)
@example("sweep", {"model": "a:b\x1b[2J"}, [])
@example("sweep", {"model": ":"}, [])
@example("sweep", {"name": "a" * 5000}, [])
def test_flags_of_any_text(place: Path, verb: str, flags: dict[str, str], words: list[str]) -> None:
    spelled = [f"--{key.replace('_', '-')}={text}" for key, text in flags.items()]
    holds(place, [verb, "--dry-run", *spelled, *words])


@few
@given(
    st.sampled_from(READING),
    st.lists(TEXT, max_size=2),
    st.dictionaries(st.sampled_from(["format", "along", "base", "cell", "delta", "overlay"]), TEXT, max_size=2),
    st.sampled_from([None, "../out", "out", "out/p.html", "out/\x1b[2J", "out/" + "a" * 300, "/dev/null", "/dev/full"]),
)
def test_words_and_flags_of_what_reads_runs(
    place: Path, verb: str, words: list[str], flags: dict[str, str], output: str | None
) -> None:
    own = [f"--{key}={text}" for key, text in flags.items()] + ([f"--output={output}"] if output else [])
    holds(place, [verb, *words, *own], lambda name: name.removeprefix("../").split("/")[0] in ("out", "reports"))
    for name in ("out", "reports", "../out"):
        shutil.rmtree(place / name, ignore_errors=True)
        (place / name).unlink(missing_ok=True)


OF_WORKER = ("connect", "token", "token-file", "address", "data-dir", "wait")
OF_AB = ("a", "b", "delta", "epsilon", "max-blocks", "looks", "time", "python-a", "rev-b")
OF_VALIDATE = ("rounds", "delta", "epsilon", "max-blocks")
SPOILT = {"ab": [*OF_AB, "replicas", "data"], "validate": [*OF_VALIDATE, "model", "trials"], "worker": [*OF_WORKER]}


@few
@given(st.data(), st.sampled_from(sorted(SPOILT)), st.lists(TEXT, max_size=1))
def test_verbs_that_measure_refuse_what_they_cannot_use(
    place: Path, data: st.DataObject, verb: str, words: list[str]
) -> None:
    flags = data.draw(
        st.dictionaries(st.sampled_from(SPOILT[verb]), TEXT.filter(lambda text: "\0" not in text), max_size=3)
    )
    own = [f"--{key}={text}" for key, text in flags.items()]
    if verb == "worker":
        own = ["--connect=127.0.0.1:1", "--wait=0", *own]  # a port that nobody listens at
    with pytest.MonkeyPatch.context() as patch:
        for name in ("harness.run.kinds.ab.decide", "harness.run.kinds.validate.validate"):
            importlib.import_module("harness.cli._measuring")
            importlib.import_module(name.rpartition(".")[0])
            patch.setattr(name, would_measure)
        assert holds(place, [verb, *own, *words]) in (2, 4)


def would_measure(*_: Any) -> None:
    raise HarnessError("it would measure")


TABLE = {
    "strategy": "mirrored",
    "replicas": "2",
    "model": "resnet50",
    "throughput_examples_per_s": "812.5",
    "low": "",
    "high": "",
}


@few
@given(
    st.dictionaries(st.sampled_from(sorted(TABLE)) | TEXT, TEXT, max_size=3),
    st.binary(max_size=4),
    st.dictionaries(st.sampled_from(["name", "source"]), TEXT, max_size=1),
)
@example({}, b"", {"name": "../x"})
@example({"replicas": "9" * 5000}, b"", {})
@example({"a" * 200_000: "1"}, b"", {})
@example({}, b'"', {})
def test_tables_of_any_content(place: Path, cells: dict[str, str], tail: bytes, flags: dict[str, str]) -> None:
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, [*TABLE, *(cells.keys() - TABLE)])
    table.writeheader()
    table.writerows([TABLE, TABLE | cells])
    (place / "table.csv").write_bytes(text.getvalue().encode("utf-8", "surrogatepass") + tail)
    kept = {path.name for path in (place / "results").iterdir()}
    new = lambda name: name.startswith("results/") and name.split("/")[1] not in kept  # noqa: E731
    code = holds(place, ["import", "table.csv", *(f"--{key}={value}" for key, value in flags.items())], new)
    made = {path for path in (place / "results").iterdir() if path.name not in kept}
    assert code in (0, 2)
    assert len(made) == (code == 0)
    for path in made:
        assert holds(place, ["show", str(path)]) == 0
        shutil.rmtree(path)


def as_toml(value: Any) -> str:
    """TOML of `value`, near enough: what it gets wrong is a spec that is no TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value) if isinstance(value, str | bool | None) else repr(value)


@few
@given(
    st.sampled_from(["sweep", "faults"]),
    st.dictionaries(st.sampled_from(sorted({*Sweep.model_fields, *Faults.model_fields})) | TEXT, VALUE, max_size=3),
    st.binary(max_size=6),
)
@example("sweep", {"replicas": json.loads("[" * 60 + "]" * 60)}, b"")
@example("sweep", {}, b"trials = " + b"9" * 5000)
@example("faults", {}, b"seed = 0x" + b"f" * 5000)
def test_specs_of_any_content(place: Path, verb: str, keys: dict[str, Any], tail: bytes) -> None:
    text = "\n".join(
        f"{key if key.isidentifier() else json.dumps(key)} = {as_toml(value)}" for key, value in keys.items()
    )
    spec = place / "spec.toml"
    spec.write_bytes(text.encode("utf-8", "surrogateescape" if "\udcff" in text else "replace") + b"\n" + tail)
    holds(place, [verb, "spec.toml", "--dry-run"])


def with_damage(text: str, draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """One value somewhere in a JSON object is another, or missing."""
    whole = json.loads(text)
    at: Any = whole
    while True:
        key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
            break
        at = inner
    if draw(st.booleans()):
        at[key] = draw(VALUE)
    else:
        del at[key]
    return json.dumps(whole)


@few
@given(st.data(), st.sampled_from(["run.json", "trials.jsonl"]), st.sampled_from(["", "--json"]))
def test_records_with_any_damage(place: Path, data: st.DataObject, name: str, flag: str) -> None:
    [folder] = (place / "results").iterdir()
    file = folder / name
    kept = file.read_text()
    lines = kept.splitlines() if name == "trials.jsonl" else [kept]
    try:
        file.write_text("\n".join([with_damage(lines[0], data.draw), *lines[1:]]) + "\n")
        codes = {holds(place, ["show", str(folder), *filter(None, [flag])]), holds(place, ["export", str(folder)])}
        codes.add(holds(place, ["report", str(folder), "--output=p.html"], lambda name: name == "p.html"))
        assert len(codes) == 1, "one verb reads what another refuses"
        assert codes <= {0, 4}
        assert holds(place, ["list", *filter(None, [flag])]) == 0
    finally:
        file.write_text(kept)
        (place / "p.html").unlink(missing_ok=True)


@few
@given(st.lists(st.binary(max_size=40) | TEXT.map(lambda text: text.encode("utf-8", "replace")), max_size=4))
@example([b'{"a":' + b"[" * 1000, b"\n"])
def test_frames_of_any_bytes_are_refused(frames: list[bytes]) -> None:
    ours = own_identity("")
    for answered in (lambda wire: ask(wire, "t" * 16, ours), lambda wire: admit(wire, "t" * 16, ours)):
        with (
            socket.create_server(("127.0.0.1", 0)) as listening,
            socket.create_connection(listening.getsockname()) as stranger,
            contextlib.closing(Wire(listening.accept()[0])) as wire,
        ):
            stranger.sendall(b"".join(frames))
            stranger.shutdown(socket.SHUT_WR)
            with pytest.raises(HarnessError) as caught:
                answered(wire)
        assert not [letter for letter in str(caught.value) if unicodedata.category(letter) == "Cc"]
