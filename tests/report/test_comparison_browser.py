"""The page of a comparison in a real browser: nothing runs out of a wide or a narrow window."""

import re
from pathlib import Path

import pytest

from harness.analysis.comparison import compare_runs
from harness.analysis.estimates.verdict import Margins
from harness.report.comparison import Surface, renderer
from tests.comparisons import sweep_run
from tests.report.test_browser import MEASURE, run
from tests.synthetic import default_cells


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison with every verdict's look, which also measures itself once it is drawn."""
    a = sweep_run("run-a", default_cells(), faults=True, noise=0.02)
    facts = {"package.tensorflow": "2.22.0", "env.XLA_FLAGS": "--xla_" + "long_" * 30}
    b = sweep_run("run-b", default_cells(), faults=True, noise=0.02, seed=2, wall=1.04, facts=facts)
    text = renderer("html").render(compare_runs(a, b, Margins()), Surface())
    file = tmp_path_factory.mktemp("browser") / "comparison.html"
    file.write_text(text.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [1200, 500])
def test_the_page_never_scrolls_sideways(chromium: Path, page: Path, tmp_path: Path, width: int) -> None:
    done = run(chromium, tmp_path, page, f"--window-size={width},1000", "--dump-dom")
    seen = re.search(r'data-seen="(\d+) (\d+) (\d+)"', done.stdout)
    assert seen is not None, "the page's own script did not run"
    content, window, figures = map(int, seen.groups())
    assert content <= window, f"{content} pixels of content in a window of {window}"
    assert figures == 1
