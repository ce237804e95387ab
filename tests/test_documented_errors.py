"""What a public function raises is in its docstring, in the rooms whose functions other programs may call."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import harness

ROOT = Path(harness.__file__).parent
ROOMS = ("analysis", "environment", "plan", "protocol", "record", "spec", "api.py")


def raising(node: ast.AST) -> bool:
    """Whether it raises an error, but in a function within it."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return False
    return (isinstance(node, ast.Raise) and node.exc is not None) or any(map(raising, ast.iter_child_nodes(node)))


def told(node: ast.FunctionDef) -> bool:
    """Whether the docstring has an error, or that something is raised."""
    return re.search(r"Error|[Rr]aise[sd]|NothingLeft|Unsupported", ast.get_docstring(node) or "") is not None


def silent(body: list[ast.stmt]) -> Iterator[str]:
    """Public functions that raise an error themselves, and whose docstrings have none."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from silent(node.body)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield from [node.name] * (any(map(raising, node.body)) and not told(node))


def test_a_public_function_that_raises_says_what() -> None:
    files = [file for room in ROOMS for file in [ROOT / room, *(ROOT / room).rglob("*.py")] if file.suffix == ".py"]
    found = {f"{file.relative_to(ROOT)}: {name}" for file in files for name in silent(ast.parse(file.read_text()).body)}
    assert found == set()


def test_an_error_that_is_not_said_is_found() -> None:
    text = 'def f():\n    """UsageError."""\n    raise UsageError("no")'
    assert list(silent(ast.parse(text).body)) == []
    assert list(silent(ast.parse(text.replace("UsageError.", "Nothing.")).body)) == ["f"]
