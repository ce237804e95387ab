"""The gate's options and ini keys, and what they say together.

Imports nothing but pytest and a file of numbers: every run of pytest loads this, gate or no gate.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from harness.looks import MAX_BLOCKS, MOST_BLOCKS, QUIET_BLOCKS

Mode = Literal["against", "baseline", "save", "prove", "off"]
FEWEST_BLOCKS = 2
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,40}")
_NONE_GIVEN = (
    "the training gate is not asked for: give --gate-against REV (another git revision, taking turns) or "
    "--gate-baseline NAME (a run saved on this machine by --gate-save NAME)"
)
_MOST = f"Most blocks, each a fresh trial a side (default {MAX_BLOCKS}; {QUIET_BLOCKS} on a quiet machine)."
_DISABLED = "benchmarks are disabled; with --gate-against or --gate-baseline too the cell is proved, not timed"


@dataclass(frozen=True)
class GateOptions:
    """What was asked of the gate, by options and else by ini keys."""

    against: str | None
    """A git revision."""
    baseline: str | None
    save: str | None
    """Names of stored runs."""
    delta: str | None
    epsilon: str | None
    max_blocks: int | None
    blocks: int | None
    """So many with one look, at the end."""
    results: Path
    """Absolute."""
    json: Path | None
    """Absolute: where what was found is written."""
    strict: bool
    """Whether a test without a verdict fails."""
    disabled: bool
    """Whether pytest-benchmark is told not to time anything."""

    @property
    def mode(self) -> Mode:
        """What gate tests do."""
        if self.against is None and self.baseline is None and self.save is None:
            return "off"
        if self.disabled:
            return "prove"
        if self.against is not None:
            return "against"
        return "baseline" if self.baseline is not None else "save"

    @property
    def why_off(self) -> str:
        """The one line that a gate test is skipped with when nothing was asked for."""
        return _DISABLED if self.disabled else _NONE_GIVEN


def add_options(parser: pytest.Parser) -> None:
    """Every option begins with `--gate-`, so that none is another plugin's or a suite's own."""
    group = parser.getgroup("training gate", "deciding whether a training step became slower")

    def add(name: str, metavar: str, text: str, ini: bool = True) -> None:
        key = f"gate_{name}"
        more = f" Ini: {key}." if ini else ""
        group.addoption(f"--gate-{name.replace('_', '-')}", dest=key, metavar=metavar, default=None, help=text + more)
        if ini:
            parser.addini(key, help=text, default=None)

    add("against", "REV", "Measure the working tree against this git revision, both alive together, taking turns.")
    add("baseline", "NAME", "Measure against the run that --gate-save NAME recorded on this machine.", ini=False)
    add("save", "NAME", "Measure and keep the run as the baseline NAME.", ini=False)
    add("delta", "SHARE", "Smallest difference that counts; default 0.01, or this machine's noise floor when larger.")
    add("epsilon", "SHARE", "Margin of equivalence; default 0.03, or more where delta asks for it.")
    add("max_blocks", "N", _MOST)
    add("blocks", "N", "So many blocks in any case, and no look before the last of them.")
    add("results", "DIR", "Folder that runs are kept in (default: results below the root folder).")
    add("json", "FILE", "Write what was found of each test there, as JSON.", ini=False)
    strict = "A test fails where the measurement does not tell, too."
    group.addoption("--gate-strict", dest="gate_strict", action="store_true", help=f"{strict} Ini: gate_strict.")
    parser.addini("gate_strict", help=strict, type="bool", default=False)


def read_options(config: pytest.Config) -> GateOptions:
    """Options over ini keys. pytest.UsageError, one line, on options that exclude each other or mean nothing."""
    against, baseline, save = (config.getoption(f"gate_{name}") for name in ("against", "baseline", "save"))
    if against is None and baseline is None and save is None:
        against = config.getini("gate_against") or None
    for other, given in (("--gate-save", save), ("--gate-baseline", baseline)):
        if against is not None and given is not None:
            raise pytest.UsageError(
                f"{other}: does not go with --gate-against, which measures both revisions now and needs nothing stored"
            )
    for flag, name in (("--gate-baseline", baseline), ("--gate-save", save)):
        if name is not None and not _NAME.fullmatch(name):
            raise pytest.UsageError(
                f"{flag}: given '{name}', expected a name of letters, digits, '_', '.' and '-', at most 41 of them"
            )
    return GateOptions(
        against=against,
        baseline=baseline,
        save=save,
        delta=_either(config, "gate_delta"),
        epsilon=_either(config, "gate_epsilon"),
        max_blocks=_blocks("gate_max_blocks", _either(config, "gate_max_blocks")),
        blocks=_blocks("gate_blocks", _either(config, "gate_blocks")),
        results=_results(config),
        json=_json(config),
        strict=bool(config.getoption("gate_strict") or config.getini("gate_strict")),
        disabled=bool(config.getoption("benchmark_disable", False))
        and not bool(config.getoption("benchmark_enable", False)),
    )


def _either(config: pytest.Config, key: str) -> str | None:
    found: str | None = config.getoption(key)
    return found if found is not None else config.getini(key) or None


def _blocks(key: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        count = int(text)
    except ValueError:
        count = 0
    if not FEWEST_BLOCKS <= count <= MOST_BLOCKS:
        raise pytest.UsageError(
            f"{key}: given '{text}', expected a whole number from {FEWEST_BLOCKS} to {MOST_BLOCKS}: one block has no "
            "spread"
        )
    return count


def _results(config: pytest.Config) -> Path:
    """An option is seen from where pytest was called, an ini key from the root folder."""
    given = config.getoption("gate_results")
    seen_from = config.rootpath if given is None else config.invocation_params.dir
    text = config.getini("gate_results") or "results" if given is None else given
    return _place("gate_results", "folder", seen_from, text)


def _json(config: pytest.Config) -> Path | None:
    given = config.getoption("gate_json")
    return None if given is None else _place("gate_json", "file", config.invocation_params.dir, given)


def _place(key: str, kind: str, seen_from: Path, text: str) -> Path:
    try:
        return seen_from / Path(text).expanduser()
    except RuntimeError as error:  # nobody knows whose home it is
        raise pytest.UsageError(f"{key}: given '{text}', expected a {kind}: {error}") from None
