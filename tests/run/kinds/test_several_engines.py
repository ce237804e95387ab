"""The preloaded processes of a run of several engines: they import side by side, and go together."""

from pathlib import Path
from typing import ClassVar

import pytest

from harness.record import RunStore
from harness.run.kinds.sweep import SweepRun, first_plan
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

    def __init__(self, engine: str, **_: object) -> None:
        self.engine = engine

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


def with_both(folder: Path, monkeypatch: pytest.MonkeyPatch, cannot: str = "") -> list[tuple[str, str]]:
    """What is done with the processes of a run of both engines, in turn."""
    Told.did, Told.cannot = [], cannot
    monkeypatch.setattr("harness.run.kinds.base.Zygote", Told)
    sweep, cells = Sweep(trials=1), [cell(engine=name) for name in ENGINES]
    begun = manifest(sweep=sweep, cells=cells, plans=[first_plan(sweep, cells)])
    with RunStore.create(folder, begun) as store, SweepRun(store, Quiet()).environments() as zygotes:
        assert list(zygotes) == list(ENGINES)
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
