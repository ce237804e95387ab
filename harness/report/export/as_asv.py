"""The results folder of airspeed velocity (asv): `benchmarks.json`, `<machine>/machine.json` and a file a commit.

A cell is two benchmarks, its step time (seconds) and its peak memory (bytes): asv takes smaller for better, so
throughputs are left to the other formats. Written into a folder that has results already, it adds to them; a cell at
the same commit, machine and environment is replaced. Formats: asv 0.6, `asv/results.py` (version 2) and
`asv/machine.py` (1).
"""

import datetime
import hashlib
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.analysis import CellSummary, summarise
from harness.analysis.estimates.intervals import throughput_interval
from harness.environment import Fact
from harness.errors import HarnessError, StorageError, UsageError
from harness.files import LARGEST_RECORDS, read_whole
from harness.record.engines import engine_versions
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.report.export.base import Exporter, alone_in, by_cell, write_folder
from harness.report.words.names import slug, told_apart
from harness.report.words.text import IN_THESE_MINUTES

BENCHMARKS_VERSION = 2
RESULTS_VERSION = 2
MACHINE_VERSION = 1
_COLUMNS = (
    "result",
    "params",
    "version",
    "started_at",
    "duration",
    "stats_ci_99_a",
    "stats_ci_99_b",
    "stats_q_25",
    "stats_q_75",
    "stats_number",
    "stats_repeat",
    "samples",
)
_MEASURES = {
    "step_time": ("time", "seconds", f"step time, its interval {IN_THESE_MINUTES}"),
    "peak_memory": ("peakmemory", "bytes", "peak memory"),
}
LONGEST_ENVIRONMENT = 128
"""Letters from which asv's own name for a file of results has a digest in place of the environment's name."""
NOT_APPLICABLE = float("nan")
"""asv's n/a, for a cell that this machine cannot run; null is a benchmark that failed."""


@dataclass(frozen=True)
class _Named:
    name: str
    """`mnist_cnn.mirrored-x2-b64-…-virtual-cpu`; a benchmark's has what it measures behind a dot."""
    cell: CellSummary


@dataclass(frozen=True)
class _Asv:
    name: str = "asv"
    summary: str = "a results folder of airspeed velocity: step times and peak memory by commit"
    suffix: str = ".asv"

    def export(self, run: Run, target: Path | None) -> str | None:
        """See Exporter."""
        if target is None:
            raise UsageError("--output: asv is a folder and cannot be printed; name its results_dir with --output DIR")
        commit = run.manifest.facts.get("git.revision")
        if not isinstance(commit, str):
            raise HarnessError(
                "format asv: asv keeps results by commit, and this run was not measured in a git checkout; "
                "export csv instead"
            )
        commit, _, mark = commit.partition("-")
        if mark:
            had = "had" if mark == "dirty" else "may have had"
            raise HarnessError(
                f"format asv: asv keeps results by commit, and this run's work tree {had} changes beyond {commit[:8]}; "
                "commit them and measure again, or export csv"
            )
        with alone_in(target):
            write_folder(target, _files(run, commit, target))
        return None


def _files(run: Run, commit: str, target: Path) -> dict[str, bytes]:
    """What is to be there, with what earlier exports have left."""
    facts = run.manifest.facts
    cells = summarise(run.manifest, run.trials, run.rank_unproved).cells
    machine, environment = slug(f"machine-{facts.get('machine.id')}"), _environment(facts)
    known = _read(target / "benchmarks.json", BENCHMARKS_VERSION)
    described = {name: entry for cell in _named(cells) for name, entry in _described(cell).items()}
    file = f"{machine}/{slug(commit[:8])}-{environment}.json"
    results = _results(run, cells, commit, machine, environment)
    # other cells of the same commit, measured in another run, are kept
    earlier = _read(target / file, RESULTS_VERSION)
    if earlier.get("result_columns") == results["result_columns"]:
        if not isinstance(earlier.get("results"), dict):
            raise _not_asvs(target / file, RESULTS_VERSION)
        results["results"] = {**earlier["results"], **results["results"]}
    return {
        f"{machine}/machine.json": _json({**_machine(machine, facts), "version": MACHINE_VERSION}),
        file: _json(results),
        "benchmarks.json": _json({**known, **described, "version": BENCHMARKS_VERSION}),
    }


def _results(run: Run, cells: Sequence[CellSummary], commit: str, machine: str, environment: str) -> dict[str, Any]:
    facts, own = run.manifest.facts, by_cell(run.trials)
    requirements = {name: str(facts.get(f"package.{name}") or "") for name in ("tensorflow", "keras", "numpy")}
    requirements |= {name: str(version) for name, version in engine_versions(facts).items()}
    python = _python(facts)
    return {
        "commit_hash": commit,
        "env_name": environment,
        "date": _milliseconds(run.manifest.created_utc),
        "params": {**_machine(machine, facts), **requirements, "python": python},
        "python": python,
        "requirements": requirements,
        "env_vars": {},
        "result_columns": list(_COLUMNS),
        "results": {name: row for cell in _named(cells) for name, row in _rows(cell, own[cell.cell.cell_id]).items()},
        "durations": {},
        "version": RESULTS_VERSION,
    }


def _rows(named: _Named, own: Sequence[TrialRecord]) -> dict[str, list[Any]]:
    """The two benchmarks of a cell, whose trials are `own`, each by `_COLUMNS`. What is unproved is n/a."""
    cell = named.cell
    ok = [trial for trial in own if trial.status == "ok" and cell.trials.status == "ok"]
    missing = NOT_APPLICABLE if cell.trials.status in ("unproved", "unsupported", "missing") else None
    started = _milliseconds(own[0].started_utc) if own else None
    duration = sum(trial.phases.fixed_s + (trial.phases.steady_s or 0.0) for trial in own) or None
    rows = {}
    for measure in _MEASURES:
        values = [value for trial in ok if (value := _value(trial, measure)) is not None]
        result, stats = missing, [None] * 6
        if values and cell.measured is not None:
            result = cell.measured.step_time_s.value if measure == "step_time" else max(values)
            stats = _stats(cell, values, measure)
        samples = [values] if values else None
        rows[f"{named.name}.{measure}"] = [[result], [], _version(measure), started, duration, *stats, samples]
    return rows


def _stats(cell: CellSummary, values: Sequence[float], measure: str) -> list[Any]:
    """99 % interval, quartiles, and how many trials; the interval is null where it cannot be known."""
    assert cell.measured is not None
    low = high = None
    if measure == "step_time":
        throughput = throughput_interval(cell.measured.sample, 0.99)
        time = throughput.scaled(1 / cell.trials.cell.work.amount).inverted()
        low, high = time.low, time.high
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return [[low], [high], [quartiles[0]], [quartiles[2]], [1], [len(values)]]


def _value(trial: TrialRecord, measure: str) -> float | None:
    return trial.step_time_s if measure == "step_time" else trial.peak_memory_bytes


def _described(named: _Named) -> dict[str, dict[str, Any]]:
    """The entries of `benchmarks.json`."""
    full_name = named.cell.trials.cell.full_name
    return {
        f"{named.name}.{measure}": {
            "name": f"{named.name}.{measure}",
            "pretty_name": f"{full_name}, {words}",
            "code": full_name,
            "type": kind,
            "unit": unit,
            "param_names": [],
            "params": [],
            "timeout": 60.0,
            "version": _version(measure),
        }
        for measure, (kind, unit, words) in _MEASURES.items()
    }


def _named(cells: Sequence[CellSummary]) -> list[_Named]:
    """Each cell with its benchmarks' name, whose parts are the levels of asv's pages."""
    own = [cell.trials.cell for cell in cells]
    names = told_apart([f"{slug(cell.subject)}.{slug(cell.full_name)}" for cell in own], own)
    return [_Named(name, cell) for name, cell in zip(names, cells, strict=True)]


def _version(measure: str) -> str:
    """asv compares results of one version only; it changes when the figure means something else."""
    return f"harness-{measure}-1"


def _machine(name: str, facts: Mapping[str, Fact]) -> dict[str, str]:
    parts = {
        "machine": name,
        "os": f"{facts.get('os.system')} {facts.get('os.release')}",
        "arch": facts.get("cpu.architecture"),
        "cpu": facts.get("cpu.model"),
        "num_cpu": facts.get("cpu.logical_cores"),
        "ram": facts.get("memory.total_bytes"),
    }
    return {key: "" if value is None else str(value) for key, value in parts.items()}


def _environment(facts: Mapping[str, Fact]) -> str:
    """Of all versions that results of one commit may differ in; a long one is hashed, as asv does."""
    engines = "".join(f"-{name}{version}" for name, version in engine_versions(facts).items())
    name = f"harness-py{_python(facts)}-tensorflow{facts.get('package.tensorflow')}{engines}"
    name = slug(name.replace(".", "_"))
    if len(name) < LONGEST_ENVIRONMENT:
        return name
    return f"env-{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()}"


def _python(facts: Mapping[str, Fact]) -> str:
    return ".".join(str(facts.get("python.version") or "").split(".")[:2])


def _read(path: Path, version: int) -> dict[str, Any]:
    """What earlier exports wrote there; StorageError when it is something else."""
    try:
        known = json.loads(read_whole(path, LARGEST_RECORDS))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"cannot read '{path}': {reason}; name another folder with --output DIR") from None
    if not isinstance(known, dict) or known.get("version") != version:
        raise _not_asvs(path, version)
    return known


def _not_asvs(path: Path, version: int) -> StorageError:
    return StorageError(f"'{path}' is not asv's (version {version}); name another folder with --output DIR")


def _milliseconds(text: str) -> int:
    return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


EXPORTER: Exporter = _Asv()
