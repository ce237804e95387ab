"""`pytest benchmarks/`: each benchmark is a cell, measured by its own trials, for pytest-benchmark.

A module `bench_*.py` names its spec in `SPEC`, seen from the repository's root, and has a test that takes
`cell` and `measured`. Before the first of its tests the cells that are going to be tested (and their base
cases) are measured together: fresh processes, taking turns, block after block, as a sweep does. The run
is recorded under `results/`.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.suite import MeasuredCell, measured_cells, quick, read_spec
from harness.errors import HarnessError, Interrupted
from harness.plan import estimate
from harness.pytest_plugin.telling import progress_lines, teller
from harness.record.reading import Run
from harness.run.kinds.measure import measure
from harness.run.progress import duration
from harness.spec import Cell, Sweep


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--spec` and `--results`."""
    group = parser.getgroup("harness")
    group.addoption("--spec", metavar="FILE.toml", help="Measure this spec's cells instead of the module's own.")
    group.addoption("--results", metavar="DIR", help="Folder that runs are kept in (default: results).")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a cell of the module's spec."""
    if "cell" not in metafunc.fixturenames:
        return
    try:
        _, cells = read_spec(_spec_of(metafunc.config, metafunc.module))
    except HarnessError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    # By name, so that a saved benchmark's `params` are text; the fixture below turns it into the cell.
    metafunc.parametrize("cell", list(cells), ids=list(cells), indirect=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was saved of a cell under an earlier name is compared, too: the cell's id finds it."""
    saved = getattr(getattr(session.config, "_benchmarksession", None), "compared_mapping", None) or {}
    ids = {item.nodeid: cell_id for item in session.items if (cell_id := _cell_id(item)) is not None} if saved else {}
    for benchmarks in saved.values():
        by_id = {one["extra_info"].get("cell_id"): one for one in benchmarks.values()}
        benchmarks |= {test: by_id[cell_id] for test, cell_id in ids.items() if cell_id in by_id} | benchmarks


def _cell_id(item: pytest.Item) -> str | None:
    """That of the cell that a test of a spec is about."""
    module, call = getattr(item, "module", None), getattr(item, "callspec", None)
    if not hasattr(module, "SPEC") or call is None or "cell" not in call.params:
        return None
    _, cells = read_spec(_spec_of(item.config, module))
    return cells[call.params["cell"]].cell_id


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> Cell:
    """The cell that the test is about."""
    _, cells = read_spec(_spec_of(request.config, request.module))
    return cells[request.param]


@pytest.fixture(scope="module")
def measured(request: pytest.FixtureRequest) -> Mapping[str, MeasuredCell]:
    """What was measured of the module's selected cells, by cell id; measured now."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        pytest.skip("cells are timed by turns in one process: run the suite without -n")
    config = request.config
    sweep, cells = read_spec(_spec_of(config, request.module))
    if config.getoption("benchmark_disable") and not config.getoption("benchmark_enable"):
        sweep = quick(sweep)
    try:
        return measured_cells(_measure(config, sweep, [cells[name] for name in _selected(request)]))
    except Interrupted as error:
        pytest.exit(str(error), returncode=error.exit_code)
    except HarnessError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def measured_cell(cell: Cell, measured: Mapping[str, MeasuredCell]) -> MeasuredCell:
    """What was measured of the test's own cell."""
    return measured[cell.cell_id]


def _spec_of(config: pytest.Config, module: object) -> Path:
    given = config.getoption("spec")
    own: str | Path = getattr(module, "SPEC")  # noqa: B009
    return config.invocation_params.dir / given if given else config.rootpath / own


def _selected(request: pytest.FixtureRequest) -> list[str]:
    """Names of the cells of the module's tests that are left after -k and the like."""
    mine = [item for item in request.session.items if getattr(item, "module", None) is request.module]
    names = (item.callspec.params.get("cell") for item in mine if hasattr(item, "callspec"))
    return list(dict.fromkeys(name for name in names if name is not None))


def _measure(config: pytest.Config, sweep: Sweep, cells: list[Cell]) -> Run:
    """Measure, and say so: pytest is silent for a minute otherwise. With -v one line a trial."""
    given = config.getoption("results")
    results = config.invocation_params.dir / given if given else config.rootpath / "results"
    expected = estimate(sweep, cells)
    say = teller(config)
    say(f"\nmeasuring {len(cells)} cells, {expected.trials} trials, about {duration(expected.seconds)}")
    command = ["pytest", *map(str, config.invocation_params.args)]
    run = measure(sweep, cells, results, command, progress_lines(config, say))
    say(f"records: {run.path}")
    return run
