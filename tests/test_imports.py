"""No two modules of the package need each other, deferred imports and those for types alone included."""

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


def needed(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules among `known` that a file imports, wherever in it that is written."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in known else node.module


def circle(root: Path) -> list[str]:
    """A circle of modules that need one another, or nothing."""
    known = modules(root)
    try:
        TopologicalSorter({name: set(needed(path, known)) for name, path in known.items()}).prepare()
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
