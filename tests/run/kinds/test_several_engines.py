"""The preloaded processes of a run of several engines: they import side by side, and go together."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import pytest

from harness.errors import UsageError
from harness.record import Machine, RunManifest, RunStore
from harness.run.kinds.sweep import SweepRun, first_plan
from harness.run.process.startup import Startup
from harness.run.process.zygote import ZygoteError
from harness.run.progress import Quiet
from harness.spec import Sweep
from tests.record.examples import cell, manifest

FIRST, SECOND = ENGINES = ("tests.engines.numpy_engine:NumpyEngine", "tests.engines.numpy_engine:NumpyAgain")


class Told:
    """A process of an engine that only tells what is done with it, and may be unable to import."""

    did: ClassVar[list[tuple[str, str]]]
    cannot: ClassVar[str]
    versions: ClassVar[dict[str, str]] = {"numpy": "2.0.0"}

    def __init__(self, startup: Startup) -> None:
        self.engine = startup.engine

    def launch(self) -> None:
        self.did.append(("launched", self.engine))

    def __enter__(self) -> "Told":
        self.did.append(("waited for", self.engine))
        if self.engine == self.cannot:
            raise ZygoteError("it could not be imported")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.did.append(("closed", self.engine))


def with_engines(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *engines: str, facts: Mapping[str, str] = MappingProxyType({})
) -> RunManifest:
    """The manifest of a run of these engines, begun with those facts, once their processes are there."""
    monkeypatch.setattr("harness.run.kinds.base.Zygote", Told)
    sweep, cells = Sweep(trials=1), [cell(engine=name) for name in engines]
    begun = manifest(sweep=sweep, cells=cells, plans=[first_plan(sweep, cells)], machine=Machine(facts={**facts}))
    with RunStore.create(folder, begun) as store:
        with SweepRun(store, Quiet()).environments() as zygotes:
            assert list(zygotes) == list(engines)
        return store.manifest


def with_both(folder: Path, monkeypatch: pytest.MonkeyPatch, cannot: str = "") -> list[tuple[str, str]]:
    """What is done with the processes of a run of both engines, in turn."""
    Told.did, Told.cannot = [], cannot
    with_engines(folder, monkeypatch, *ENGINES)
    return Told.did


def test_each_is_launched_before_the_first_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_both(tmp_path, monkeypatch)[:4] == [
        ("launched", FIRST),
        ("launched", SECOND),
        ("waited for", FIRST),
        ("waited for", SECOND),
    ]
    assert {who for what, who in Told.did if what == "closed"} == {*ENGINES}


@pytest.mark.parametrize("cannot", ENGINES)
def test_all_are_closed_where_one_cannot_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cannot: str) -> None:
    with pytest.raises(ZygoteError, match="could not be imported"):
        with_both(tmp_path, monkeypatch, cannot)
    assert {who for what, who in Told.did if what == "closed"} == {*ENGINES}


def test_an_engines_versions_are_called_alike_beside_others_and_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Told.did, Told.cannot = [], ""
    found = [with_engines(tmp_path / str(len(of)), monkeypatch, *of).facts for of in (ENGINES, ENGINES[:1])]
    assert found == [{f"engine.{name}.numpy": "2.0.0" for name in of} for of in (ENGINES, ENGINES[:1])]


def test_versions_that_earlier_runs_called_otherwise_are_those_of_their_one_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Told.did, Told.cannot = [], ""
    gone_on = with_engines(tmp_path / "same", monkeypatch, FIRST, facts={"engine.numpy": "2.0.0"})
    assert gone_on.machine.facts == {f"engine.{FIRST}.numpy": "2.0.0"}
    with pytest.raises(UsageError, match=f"others than at the start \\(engine.{FIRST}.numpy 1.9.9 → 2.0.0\\)"):
        with_engines(tmp_path / "other", monkeypatch, FIRST, facts={"engine.numpy": "1.9.9"})
