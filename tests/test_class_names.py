"""One name, one meaning: no two public classes of the harness share a name."""

import ast
from collections import defaultdict
from pathlib import Path

import harness

ALIKE = {
    "Tpu": "the device kind and the strategy that are both called tpu: one registered object of each, in its own file",
}
"""Names that two classes have, with the reason."""


def public_classes() -> dict[str, list[str]]:
    """The files that define a public class at their top level, by its name."""
    root = Path(harness.__file__).parent
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(root.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(file.relative_to(root).as_posix())
    return dict(found)


def test_no_two_public_classes_share_a_name() -> None:
    shared = {name: files for name, files in public_classes().items() if len(files) > 1 and name not in ALIKE}
    assert shared == {}


def test_every_exception_is_still_one() -> None:
    classes = public_classes()
    assert {name for name in ALIKE if len(classes.get(name, [])) < 2} == set()
