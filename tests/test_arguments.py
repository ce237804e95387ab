"""What functions of the Python API take and refuse, by the annotations of their arguments."""

import inspect
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.errors import UsageError
from tests.report.export.runs import REFERENCE

WRONG = {
    "PathName": (3, "\0", b"a", ["a"], "\ud800"),
    "Folder": (None, 3, "\0", {}),
    "str": (3, b"a", "a\0", ["a"]),
    "bool": (1, "yes", None),
    "int": (True, 2.0, "2", 10**5000),
    "float": (True, "0.1", float("nan"), float("inf"), 10**400),
    "ShareOrText": (True, "1 in 100", "100%", float("nan"), float("inf"), 10**400, b"1%", [0.01]),
    "collections.abc.Callable[~P, ~R]": (5, "train"),
    "Sequence[int]": (5, "5,8", [5, "8"], [10**5000]),
    "Mapping[str, Any]": ("nope.toml", ["replicas=2"], {3: 2}),
}
"""Of each annotation what an argument must not be."""


def arguments() -> list[tuple[str, str, Any]]:
    """(function, argument, a wrong value) of all that the API offers."""
    found = []
    for name in sorted(set(harness.__all__) - {"__version__"}):
        for key, parameter in inspect.signature(getattr(harness, name)).parameters.items():
            kind = str(parameter.annotation).removesuffix(" | None")
            found += product([name], [key], WRONG[kind] if kind != "Any" else ())
    return found


def test_an_argument_of_another_type_is_bad_usage_that_names_it_in_every_function(tmp_path: Path) -> None:
    for name, key, value in arguments():
        function = getattr(harness, name)
        others = {"results"} & inspect.signature(function).parameters.keys() - {key}
        given: dict[str, Any] = dict.fromkeys(others, tmp_path)
        given |= {"a": REFERENCE} if name == "compare" and key != "a" else {}
        with pytest.raises(UsageError) as caught:
            function(value, **given) if key == "runs" else function(**given, **{key: value})
        assert str(caught.value).startswith(f"{key}: given "), (name, key, value)
        assert ", expected " in str(caught.value)
    assert not list(tmp_path.iterdir())
