"""The documentation as a site: every link of every page leads somewhere, and nothing comes from a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.printed import ROOT

ASSET = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_of_the_documentation_is_in_the_site(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert not [page for page in pages if not (site / page).exists()]


def test_a_file_of_the_repository_that_a_page_links_to_is_in_the_site(site: Path) -> None:
    linked = site / "repository" / "benchmarks" / "default.toml"
    assert linked.read_bytes() == (ROOT / "benchmarks" / "default.toml").read_bytes()
    assert 'href="repository/benchmarks/default.toml"' in (site / "how-to.html").read_text(encoding="utf-8")


def test_a_link_to_nothing_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        (tmp_path / name).write_text("# Nothing\n")
    (tmp_path / "docs" / "site_hooks.py").write_text((ROOT / "docs" / "site_hooks.py").read_text(encoding="utf-8"))
    (tmp_path / "docs" / "index.md").write_text("# Page\n\n[a spec](../benchmarks/missing.toml)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: test\nhooks: [docs/site_hooks.py]\n")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "benchmarks/missing.toml" in done.stderr


def test_no_page_fetches_anything_from_a_network(site: Path) -> None:
    fetched = {asset for page in site.glob("*.html") for asset in ASSET.findall(page.read_text(encoding="utf-8"))}
    assert not fetched
