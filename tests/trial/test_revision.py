"""With a work tree first on the path, what only the working tree has is not taken from there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EDITABLE = """
import importlib.util, sys
class Editable:
    '''As pip install -e adds it.'''
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in ('net', 'gone'):
            return importlib.util.spec_from_file_location(name, f'{ROOT}/{name}.py')
sys.meta_path.append(Editable)
"""
BEGIN = """
import sys
ROOT = sys.argv[1]
{first}
from harness.trial.revision import keep_out
keep_out(ROOT)
{then}
"""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The working tree, in the middle of work, and a work tree of what was committed."""
    root, tree = tmp_path / "my work", tmp_path / "tree"
    for folder, state in ((root, "working"), (tree, "committed")):
        (folder / "parts").mkdir(parents=True)
        (folder / "net.py").write_text(f"STATE = {state!r}\n")
        (folder / "parts" / f"only_{state}.py").write_text("")
    (root / "gone.py").write_text("")
    return root, tree


def run(folders: tuple[Path, Path], then: str, first: str = "") -> str:
    """The last line that a Python says whose path begins with the work tree."""
    root, tree = folders
    code = BEGIN.format(first=first, then=then)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree), str(Path.cwd())])}
    command = [sys.executable, "-P", "-c", code, str(root)]
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[-1]


@pytest.mark.parametrize("first", ["", EDITABLE, "sys.path.append(ROOT)", "sys.path.insert(0, ROOT)"])
def test_what_the_revision_has_comes_from_it(folders: tuple[Path, Path], first: str) -> None:
    assert run(folders, "import net; print(net.STATE)", first) == "committed"


def test_what_only_the_working_tree_has_is_refused_with_the_reason(folders: tuple[Path, Path]) -> None:
    assert run(folders, "import gone", EDITABLE) == (
        "ModuleNotFoundError: 'gone' is in the working tree but not in this revision"
    )
    assert run(folders, "import gone", "sys.path.append(ROOT)") == "ModuleNotFoundError: No module named 'gone'"


def test_a_package_without_init_is_not_a_mixture_of_both(folders: tuple[Path, Path]) -> None:
    first = "sys.path.append(ROOT)"
    assert run(folders, "import parts.only_committed; print('ok')", first) == "ok"
    assert "only_working" in run(folders, "import parts.only_working", first)


def test_what_is_installed_in_the_repository_is_found(folders: tuple[Path, Path]) -> None:
    root, _ = folders
    installed = root / ".venv" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "library.py").write_text("NAME = 'a library'\n")
    first = f"import site; site.getsitepackages = lambda: [{str(installed)!r}]; sys.path.append({str(installed)!r})"
    assert run(folders, "import library; print(library.NAME)", first) == "a library"


def test_a_work_tree_within_the_repository_is_no_part_of_the_working_tree(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    tree = root / "tmp" / "tree"
    tree.mkdir(parents=True)
    (tree / "net.py").write_text("STATE = 'committed'\n")
    (root / "net.py").write_text("STATE = 'working'\n")
    assert run((root, tree), "import net; print(net.STATE)", "sys.path.insert(0, ROOT)") == "committed"


def test_everything_else_is_found_as_before(folders: tuple[Path, Path]) -> None:
    assert run(folders, "import json, pydantic, numpy; print('ok')", EDITABLE) == "ok"
    assert run(folders, "import nowhere") == "ModuleNotFoundError: No module named 'nowhere'"
