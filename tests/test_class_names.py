"""One name, one meaning: no two classes or types of the harness share a name, wherever they are defined; nor do two
constants that other modules import."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import harness

_NUMBER = "what its name says, within the limits of a record or of a key"
_FORMAT = "the export of a run and the rendering of a comparison: one registered object of each, in its own file"
ALIKE = {
    "Tpu": "the device kind and the strategy that are both called tpu: one registered object of each, in its own file",
    "_Json": _FORMAT,
    "_Markdown": _FORMAT,
    "Array": "an array of floats",
    "Fact": "the value of a fact, as it is found and as a host sends it",
    "Natural": _NUMBER,
    "Positive": _NUMBER,
}
"""Names that two classes or types have, with the reason."""
ALIKE_CONSTANTS = {"ALPHA": "the share of false alarms that is allowed"}
"""The same of constants."""


def classes(root: Path) -> dict[str, list[str]]:
    """The files that define a class by its name, private ones and those within functions and classes as well, or a
    type: `Name = Literal[…]` or `Name = A | B` of a module, or `Name = TypeVar(…)`, of which a private one is its
    file's alone."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(root.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for name in [*names, *(name for node in tree.body for name in _types(node))]:
            found[name].append(file.relative_to(root).as_posix())
    return dict(found)


def _types(node: ast.stmt) -> list[str]:
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp | ast.Call)):
        return []
    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node.value, ast.Call):
        made_by = ast.unparse(node.value.func).rpartition(".")[2]
        names = [name for name in names if made_by in ("NewType", "ParamSpec", "TypeVar") and not name.startswith("_")]
    return [name for name in names if not name.isupper() and name.lstrip("_")[:1].isupper()]


def constants(root: Path) -> dict[str, list[str]]:
    """The files that define a constant of a name which another file imports. What is in `engines` is its engine's."""
    own = [file for file in sorted(root.rglob("*.py")) if "engines" not in file.relative_to(root).parts[:1]]
    trees = {".".join(file.relative_to(root.parent).with_suffix("").parts): ast.parse(file.read_text()) for file in own}
    imported = {
        (node.module, alias.name)
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        stored = (node for at in tree.body if isinstance(at, ast.Assign | ast.AnnAssign) for node in ast.walk(at))
        for name in stored:
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and (module, name.id) in imported:
                found[name.id].append(module)
    return {name: modules for name, modules in found.items() if name.isupper()}


def of_harness() -> dict[str, list[str]]:
    """Those of the package."""
    return classes(Path(harness.__file__).parent)


def test_no_two_classes_or_types_share_a_name() -> None:
    shared = {name: files for name, files in of_harness().items() if len(files) > 1 and name not in ALIKE}
    assert shared == {}


def test_no_two_constants_that_others_import_share_a_name() -> None:
    found = constants(Path(harness.__file__).parent)
    assert {name: of for name, of in found.items() if len(of) > 1 and name not in ALIKE_CONSTANTS} == {}


def test_every_exception_is_still_one() -> None:
    found = of_harness()
    assert {name for name in ALIKE if len(found.get(name, [])) < 2} == set()
    imported = constants(Path(harness.__file__).parent)
    assert {name for name in ALIKE_CONSTANTS if len(imported.get(name, [])) < 2} == set()


@pytest.mark.parametrize(
    "again",
    [
        "class One: ...",
        "def make():\n    class One: ...",
        "class Two:\n    class One: ...",
        "if True:\n    class One: ...",
        "One = Literal['a', 'b']",
        "One = int | str",
        "One = TypeVar('One')",
    ],
)
def test_a_class_or_type_is_found_wherever_it_is_defined(again: str, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "first.py").write_text("class One: ...\n")
    (tmp_path / "inner" / "second.py").write_text(f"{again}\n")
    assert classes(tmp_path)["One"] == ["first.py", "inner/second.py"]


def test_a_constant_counts_once_another_module_imports_it(tmp_path: Path) -> None:
    root = tmp_path / "package"
    root.mkdir()
    (root / "first.py").write_text("ONE = TWO = 1\n")
    (root / "second.py").write_text("ONE: int = 2\n")
    (root / "third.py").write_text("from package.first import ONE, TWO\nfrom package.second import ONE\n")
    assert constants(root) == {"ONE": ["package.first", "package.second"], "TWO": ["package.first"]}
