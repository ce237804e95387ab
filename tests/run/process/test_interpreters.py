"""Another interpreter: what is said of one that cannot run trials, and that nothing of ours gets into it."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.protocol.engine import Software
from harness.run.process.interpreters import Interpreter, examine, inherited, older, our_interpreter, short_path
from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote, ZygoteError
from harness.trial.engines import engine_of, software_of
from tests.rights import as_no_root
from tests.run.process.venvs import bare_venv, lend_packages
from tests.run.stubs import WITNESS, install, told_by

FLAG = "--python-b"
SOFTWARE = software_of(engine_of("tensorflow"))


def script(folder: Path, text: str) -> str:
    """An executable file."""
    path = folder / "an interpreter"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def said_of(given: str) -> str:
    with pytest.raises(UsageError) as caught:
        examine(given, FLAG, SOFTWARE)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_no_file_is_said(tmp_path: Path) -> None:
    missing = str(tmp_path / "old" / "bin" / "python")
    assert said_of(missing) == f"--python-b: no file at '{missing}'"
    assert said_of("python9.9") == "--python-b: no 'python9.9' on the PATH; give the path of an interpreter"


def test_a_home_that_nobody_knows_is_said() -> None:
    given = "~no-such-user/bin/python"
    assert said_of(given).startswith(f"--python-b: given '{given}', expected a path: Could not determine")


def test_a_link_to_what_may_not_be_looked_at_is_said(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "python").symlink_to("closed/python")
    with as_no_root():
        assert said_of(str(tmp_path / "python")).endswith("': Permission denied")


def test_the_folder_of_a_venv_is_answered_with_the_interpreter_in_it(tmp_path: Path) -> None:
    python = bare_venv(tmp_path / "old")
    assert said_of(str(tmp_path / "old")) == f"--python-b: '{tmp_path / 'old'}' is a folder; did you mean '{python}'?"
    assert said_of(str(tmp_path)).endswith("is a folder, expected an interpreter such as .venv/bin/python")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo Welcome", ""),
        ("echo 'an interpreter: no option -c' >&2; exit 2", ": an interpreter: no option -c"),
        ("kill -9 $$", ""),
        ("echo harness:{", ""),
        ("echo harness:[]", ""),
        ("""printf 'harness:%05000d' 0 | tr 0 '['""", ""),
        ("""echo 'harness:{"version": "3.11", "packages": {}}'""", ""),
        ("""echo 'harness:{"version": [3, 11, 4], "packages": {"keras": 3}}'""", ""),
        ("exec yes", ""),
        ("exec yes >&2", ": y"),
    ],
)
def test_what_is_no_python_is_said(tmp_path: Path, text: str, reason: str) -> None:
    path = script(tmp_path, text)
    assert said_of(path) == f"--python-b: '{path}' is not a Python interpreter{reason}"


def test_a_file_that_cannot_be_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a program")
    assert said_of(str(tmp_path / "text")) == f"--python-b: '{tmp_path / 'text'}' may not be executed"
    (tmp_path / "text").chmod(0o755)
    assert said_of(str(tmp_path / "text")) == f"--python-b: '{tmp_path / 'text'}' is not a Python interpreter"


def test_a_python_that_is_too_old_is_said(tmp_path: Path) -> None:
    path = script(tmp_path, """echo 'harness:{"version": [3, 9, 18], "packages": {}}'""")
    assert said_of(path) == f"--python-b: '{path}' is Python 3.9.18, expected 3.11 or newer"


def test_a_package_that_is_too_old_is_said(tmp_path: Path) -> None:
    packages = '{"tensorflow": "2.15.1", "keras": "2.15.0", "pydantic": "2.9.0"}'
    path = script(tmp_path, f"""echo 'harness:{{"version": [3, 11, 0], "packages": {packages}}}'""")
    assert said_of(path) == (
        f"--python-b: '{path}' has keras 2.15.0, expected 3 or newer; '{path}' -m pip install --upgrade tensorflow"
    )


def test_what_is_missing_in_a_real_venv_is_said_with_the_remedy(tmp_path: Path) -> None:
    python = bare_venv(tmp_path / "bare")
    assert said_of(python) == (
        f"--python-b: '{python}' cannot import tensorflow, keras, pydantic; {python} -m pip install tensorflow pydantic"
    )


def test_a_folder_that_is_only_called_like_a_package_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cloned").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(UsageError, match=f"^{FLAG}: '{sys.executable}' cannot import cloned; "):
        examine(sys.executable, FLAG, Software({"cloned": "1"}))


def test_a_python_that_prints_at_its_start_is_understood(tmp_path: Path) -> None:
    versions = '{"tensorflow": "2.20.0", "keras": "3.9.0", "pydantic": "2.9.0"}'
    path = script(tmp_path, f"""echo Hello; echo 'harness:{{"version": [3, 12, 1], "packages": {versions}}}'""")
    found = examine(path, FLAG, SOFTWARE)
    assert (found.path, found.version, found.packages["tensorflow"]) == (path, "3.12.1", "2.20.0")


def test_the_link_of_a_venv_is_not_followed_out_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = bare_venv(tmp_path / "new")
    lend_packages(python)
    monkeypatch.chdir(tmp_path)
    assert examine("new/bin/python", FLAG, SOFTWARE).path == python
    assert Path(python).resolve() != Path(python)


def test_our_own_interpreter_passes() -> None:
    found, ours = examine(sys.executable, FLAG, SOFTWARE), our_interpreter(SOFTWARE)
    assert found.path == sys.executable
    assert found.version == ours.version
    assert {name: found.packages[name] for name in ours.packages} == ours.packages


def test_nothing_of_our_venv_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("__PYVENV_LAUNCHER__", sys.executable)
    monkeypatch.setenv("PYTHONHOME", sys.prefix)
    site = f"{sys.prefix}/lib/python3.11/site-packages"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([site, str(tmp_path), f"{site}/vendored"]))
    passed_on = inherited(str(tmp_path / "python"))
    assert passed_on["PYTHONPATH"] == str(tmp_path)
    assert not {"VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "PYTHONHOME"} & passed_on.keys()
    assert inherited(sys.executable) == dict(os.environ)


def test_a_real_venv_without_pydantic_does_not_find_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    python = bare_venv(tmp_path / "bare")
    with (
        pytest.raises(ZygoteError, match="No module named 'pydantic'"),
        Zygote(Startup(python=python, path=[tmp_path])),
    ):
        pass


def test_our_harness_runs_in_a_venv_that_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    (tmp_path / "witness.py").write_text(WITNESS)
    python = bare_venv(tmp_path / "venv of old")
    lend_packages(python)
    with Zygote(Startup(python=examine(python, FLAG, SOFTWARE).path, folder=tmp_path, path=[tmp_path])) as zygote:
        told = told_by(zygote)
    assert told["prefix"] == str(tmp_path / "venv of old")
    assert told["harness"].startswith(zygote.scratch)


def test_a_script_that_does_not_run_python_by_exec_is_said(tmp_path: Path) -> None:
    """The process that it leaves in between would outlive a harness that is killed."""
    python = script(tmp_path, f'{shlex.quote(sys.executable)} "$@"\nexit $?')
    reason = r"it has another parent than the process that started it, \d+: an interpreter that is a script must "
    with pytest.raises(ZygoteError, match=reason), Zygote(Startup(python=python, path=[tmp_path])):
        pass


def test_titles_name_versions_and_python_only_where_it_differs() -> None:
    packages = {"tensorflow": "2.21.0", "keras": "3.15.1"}
    one = Interpreter("/work/.venv-old/bin/python", "3.11.7", packages)
    two = Interpreter("/opt/pythons/of/mine/bin/python", "3.12.1", {"tensorflow": "", "keras": ""})
    here, titles = Path("/work"), SOFTWARE.titles
    assert one.title(one, here, titles) == "TensorFlow 2.21.0, Keras 3.15.1 (.venv-old/bin/python)"
    assert one.title(two, here, titles) == "Python 3.11.7, TensorFlow 2.21.0, Keras 3.15.1 (.venv-old/bin/python)"
    assert two.title(two, here, titles) == "Python 3.12.1 (…/mine/bin/python)"


def test_paths_are_shortened_to_what_tells_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert short_path("/home/someone/w/old/bin/python", Path("/home/someone/w")) == "old/bin/python"
    assert short_path("/home/someone/old/bin/python", Path("/elsewhere")) == "~/old/bin/python"
    assert short_path("/usr/bin/python3", Path("/elsewhere")) == "/usr/bin/python3"


@pytest.mark.parametrize(
    ("version", "least", "is_older"),
    [
        ("2.13.0+cpu", "2.13", False),
        ("2.9.1", "2.13", True),
        ("0.10.2", "0.9", False),
        ("2", "3", True),
        ("11rc1", "11", False),
        ("11rc1", "12", True),
        ("2.15rc1", "2.16", True),
        ("unknown", "2.13", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, least: str, is_older: bool) -> None:
    assert older(version, least) is is_older
