"""The registries: a file is an entry, and listing them costs no TensorFlow."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.errors import UsageError
from harness.registry import load_attribute, registered
from harness.report.figures import looks
from harness.spec.axes import NO_STRATEGY, USUAL_STRATEGY
from harness.trial.engines import catalogue_of
from tests.axes import OF_EXTENDING


def test_the_names_are_those_that_the_command_line_promises() -> None:
    catalogue = catalogue_of()
    assert {"none", "one_device", "mirrored", "central_storage", "tpu"} <= set(catalogue.strategies)
    assert {"auto", "nccl", "hierarchical_copy", "reduction_to_one_device"} <= set(catalogue.cross_device_ops)
    assert {"gpu", "virtual-gpu", "virtual-cpu", "tpu"} <= set(catalogue.devices)
    assert {"mnist_cnn", "mlp", "resnet20", "transformer"} <= set(catalogue.models)
    assert {"digits", "synthetic"} <= set(catalogue.data)


def test_a_strategy_is_named_where_it_is_and_in_the_tables_of_keys_and_traits_say_the_rest() -> None:
    engines = [catalogue_of(name) for name in registered("harness.engines", "ENGINE")]
    names = {name for of in engines for name in of.strategies.keys() - of.devices.keys() - {NO_STRATEGY}}
    assert USUAL_STRATEGY in names
    root = Path(harness.__file__).parent
    tables = [root / "engines", root / "trial" / "same_work", root / "spec" / "axes.py", root / "spec" / "faults.py"]
    tables += [root / "report" / "figures" / "looks.py"]
    named = {
        f"{file.relative_to(root)}: {node.value}"
        for file in root.rglob("*.py")
        if not any(file.is_relative_to(table) for table in tables)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert named == set()


def test_each_strategy_that_has_a_look_of_its_own_is_some_engines() -> None:
    engines = [catalogue_of(name) for name in registered("harness.engines", "ENGINE")]
    assert set(looks._PLACES) == {name for of in engines for name in of.strategies} - OF_EXTENDING


def test_listing_every_name_imports_no_tensorflow() -> None:
    code = (
        "import sys; from harness.trial.engines import catalogue_of; catalogue_of();"
        "print(sorted({'tensorflow', 'keras', 'tensorflow_datasets', 'numpy'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_a_new_file_is_a_new_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "own_registry"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "base.py").write_text("raise RuntimeError('base is not an entry')")
    (package / "_private.py").write_text("raise RuntimeError('nor is this')")
    (package / "entry.py").write_text("class Entry: name = 'new'\nOBJECT = Entry()")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(registered("own_registry", "OBJECT")) == ["new"]


def test_a_file_may_have_several_entries_under_the_plural_of_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "registry_of_several"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("class Entry: name = 'alone'\nOBJECT = Entry()")
    (package / "two.py").write_text("class A: name = 'a'\nclass B: name = 'b'\nOBJECTS = (A(), B())")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(registered("registry_of_several", "OBJECT")) == ["alone", "a", "b"]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("no_such_module:f", "cannot import 'no_such_module'"),
        ("json:no_such_function", "module 'json' has no 'no_such_function'"),
        ("json:__name__", "is not a function"),
    ],
)
def test_a_users_own_object_that_cannot_be_loaded_names_the_key(path: str, says: str) -> None:
    with pytest.raises(UsageError, match="model: ") as error:
        load_attribute("model", path)
    assert says in str(error.value)
