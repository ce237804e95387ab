"""No two modules of the package need each other, deferred imports and those for types alone included.

A folder that is asked for by `registered` needs each of its modules.
"""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def modules(root: Path) -> dict[str, Path]:
    """Every module below a package's folder, by its name."""
    found = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def needed(of: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules among `known` that a module imports, wherever in its file that is written."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in known else node.module
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "registered":
            folder = ast.unparse(node.args[0])
            yield from entries(of if folder == "__name__" else folder.strip("'"), known)


def entries(folder: str, known: Mapping[str, Path]) -> list[str]:
    """The modules of a folder that `harness.registry.registered` imports."""
    own = {name: name.removeprefix(f"{folder}.") for name in known if name.startswith(f"{folder}.")}
    return [name for name, file in own.items() if "." not in file and file != "base" and not file.startswith("_")]


def circle(root: Path) -> list[str]:
    """A circle of modules that need one another, or nothing."""
    known = modules(root)
    try:
        TopologicalSorter({name: set(needed(name, path, known)) for name, path in known.items()}).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_no_module_is_needed_by_what_it_needs() -> None:
    assert circle(ROOT / "harness") == []


@pytest.mark.parametrize(
    "back",
    [
        "from circled import one",
        "from circled.one import X",
        "def later():\n    import circled.one",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from circled.one import X",
    ],
)
def test_a_circle_is_found_however_it_is_closed(back: str, tmp_path: Path) -> None:
    package = tmp_path / "circled"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "one.py").write_text("from circled.two import Y\n")
    (package / "two.py").write_text(f"{back}\n")
    assert set(circle(package)) == {"circled.one", "circled.two"}


@pytest.mark.parametrize("folder", ["__name__", "'circled.kinds'"])
def test_a_circle_through_a_folder_that_is_a_registry_is_found(folder: str, tmp_path: Path) -> None:
    kinds = tmp_path / "circled" / "kinds"
    kinds.mkdir(parents=True)
    (kinds.parent / "__init__.py").touch()
    (kinds.parent / "runner.py").write_text("from circled.kinds import every\n")
    (kinds / "__init__.py").write_text(f"def every():\n    return registered({folder}, 'KIND')\n")
    (kinds / "base.py").write_text("from circled.kinds import every\n")
    assert circle(kinds.parent) == []
    (kinds / "sweep.py").write_text("from circled.runner import begin\n")
    assert set(circle(kinds.parent)) == {"circled.kinds", "circled.kinds.sweep", "circled.runner"}


def test_an_engine_beside_tensorflow_is_named_in_its_folder_in_the_table_of_axes_and_in_one_of_words() -> None:
    folders = {path.parent.name for path in (ROOT / "harness" / "engines").glob("[a-z]*/__init__.py")}
    beside = folders - {"tensorflow"}
    named = {
        name
        for name, path in modules(ROOT / "harness").items()
        if not name.startswith("harness.engines.")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in beside
    }
    of_packages = "harness.environment.software"
    assert named == {"harness.spec.axes", "harness.report.words.engines", of_packages}


def test_no_module_of_the_tests_imports_tensorflow_where_it_is_collected(collected_with_tensorflow: bool) -> None:
    assert not collected_with_tensorflow


def test_what_tests_share_stands_in_a_module_that_is_no_test() -> None:
    tests = {name: path for name, path in modules(ROOT / "tests").items() if path.name.startswith("test_")}
    assert {name: of for name, path in tests.items() if (of := sorted(set(needed(name, path, tests)) - {name}))} == {}
