"""A verb offers a flag for the keys that the runs that it makes read, and for no other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli import ab, explain, sweep, validate
from harness.run.request import asked_matrix
from harness.spec.settings import Settings
from harness.spec.sweep import OF_OTHER_WORK, OF_SWEEPS, Sweep
from tests.run.benches import AbSides, ExplainBench, KindBench, SweepBench, ValidationBench

VERBS = [
    pytest.param(ab, AbSides, OF_SWEEPS, id="ab"),
    pytest.param(explain, ExplainBench, (), id="explain"),
    pytest.param(sweep, SweepBench, (), id="sweep"),
    pytest.param(validate, ValidationBench, (), id="validate"),
]
"""Each with a run of it, and flags of its own that are called as keys are."""


def read_by(does: Callable[[], object], patch: pytest.MonkeyPatch) -> set[str]:
    """The keys of a sweep that are read while something is done; a record that writes all of them down reads none."""
    found: set[str] = set()

    def told(self: Any, name: str) -> Any:
        if name in Sweep.model_fields:
            found.add(name)
        return object.__getattribute__(self, name)

    with patch.context() as noted:
        noted.setattr(Sweep, "__getattribute__", told, raising=False)
        does()
    return found


@pytest.mark.parametrize(("verb", "bench", "not_keys"), VERBS)
def test_a_verb_offers_the_settings_that_its_runs_read_and_no_others(
    verb: Any, bench: type[KindBench], not_keys: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {flag.name for flag in verb.FLAGS}
    offered = flags & Settings.model_fields.keys() - {*OF_OTHER_WORK, *not_keys}
    run = bench(tmp_path, monkeypatch)
    run.settings["half_width"] = 0.5  # so that a sweep has a second stage
    read = read_by(run.begin, monkeypatch) | read_by(lambda: asked_matrix(Sweep()), monkeypatch)
    assert offered - read == set()
    assert read - flags <= {*OF_OTHER_WORK, *OF_SWEEPS}  # no training has a `step`; repeats are the verb's own
    assert len(offered) > 10
