"""`engine install`: an environment from the pins, what is built for it, and what is left where that goes wrong."""

import errno
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sysconfig
import threading
import zipfile
from pathlib import Path
from typing import NoReturn

import pytest

from harness.engines.horovod import ENGINE as HOROVOD
from harness.errors import HarnessError, Interrupted, UsageError
from harness.protocol.engine import Environment, SourceBuild
from harness.run.interrupts import Raised
from harness.run.process import installing
from harness.run.process.engines import SEAL, digest_of, folder_of, python_of
from harness.run.process.scratch import SCRATCH_NAME

pytestmark = pytest.mark.usefixtures("nothing_installed")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An engine `small` that needs a package of the tests' own, which pip builds from a folder without any index."""
    package = tmp_path / "needed-1.0-py3-none-any.whl"

    with zipfile.ZipFile(package, "w") as wheel:
        wheel.writestr("needed.py", "")
        wheel.writestr("needed-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: needed\nVersion: 1.0\n")
        wheel.writestr("needed-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("needed-1.0.dist-info/RECORD", "")
    pins = tmp_path / "constraints.txt"
    pins.write_text("needed==1.0\n")
    environment = Environment({"needed": "1"}, ("needed",), pins)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setattr(installing, "environments", lambda: {"small": environment})
    return environment


BACKEND = """
import os, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, info = "built-1.0-py3-none-any.whl", "built-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("built.py", open("built.py").read() + f"variable = {os.environ['BUILT_WITH']!r}")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: built\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""


STAND_IN = """
case $1 in
download) cp "${0%%/*}/built-1.0.tar.gz" "$5" ;;
wheel) %s ;;
esac
"""
"""In place of pip: it fetches what lies beside the pins, and builds as the test says."""
VENV = 'mkdir -p "$4/bin" && cp "${0%/*}/pip" "$4/bin/python"\n'
"""In place of the module `venv`."""
PIP = """#!/bin/sh
shift 6
case $1 in
install) touch "$TMPDIR/left by pip" ;;
download) cp {tests}/built-1.0.tar.gz "$5" ;;
wheel) cat {tests}/end & wait ;;
esac
"""
"""In place of the interpreter of such an environment, whose pip builds until somebody writes to `end`."""


@pytest.fixture
def from_source(small: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """The engine `small` with a package that is there as a source distribution alone, one line of which is wrong."""
    root = tmp_path / "built-1.0"
    root.mkdir()
    (root / "pyproject.toml").write_text('[build-system]\nrequires=[]\nbuild-backend="backend"\nbackend-path=["."]\n')
    (root / "backend.py").write_text(BACKEND)
    (root / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: built\nVersion: 1.0\n")
    (root / "built.py").write_text("import needed\nraise RuntimeError  # wrong\n")
    shutil.make_archive(str(root), "gztar", tmp_path, root.name)
    small.constraints.write_text("needed==1.0\nbuilt==1.0\n")
    build = SourceBuild("built", ("true",), {"BUILT_WITH": "this"}, {"built.py": "# wrong"})
    environment = small._replace(needs={**small.needs, "built": "1"}, built=build)
    monkeypatch.setattr(installing, "environments", lambda: {"small": environment})
    return environment


@pytest.mark.slow
def test_what_nobody_has_a_wheel_of_is_built_there_once(from_source: Environment, tmp_path: Path) -> None:
    asked = "import built; print(built.variable)"
    for _ in range(2):
        folder, interpreter = installing.install("small")
        assert interpreter.packages == {"needed": "1.0", "built": "1.0"}
        said = subprocess.run([python_of(folder), "-c", asked], capture_output=True, text=True, check=True)
        assert said.stdout == "this\n"
        (tmp_path / "built-1.0.tar.gz").unlink(missing_ok=True)  # another install has what was built
    assert digest_of(from_source) != digest_of(from_source._replace(built=None))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            ["error: subprocess-exited-with-error", "  gloo.cc:7:1: error: no type named x", "b.cc:1:1: error: more"],
            "gloo.cc:7:1: error: no type named x",
        ),
        (
            ["  CMake Error at gloo/CMakeLists.txt:1 (cmake_minimum_required):", "    It is too old.", "", "  more"],
            "CMake Error at gloo/CMakeLists.txt:1 (cmake_minimum_required): It is too old.",
        ),
        (["ERROR: Failed building wheel", "ERROR: Failed to build it", "and so on"], "Failed to build it"),
    ],
)
def test_a_build_that_fails_tells_its_cause_and_leaves_all_that_it_said(
    tmp_path: Path, said: list[str], reason: str
) -> None:
    log = tmp_path / "small.log"
    command = ["sh", "-c", f"echo one; printf '%s\\n' {shlex.join(said)} >&2; exit 1"]
    with pytest.raises(HarnessError) as caught:
        installing._run(command, "cannot build it", log=log)
    assert str(caught.value) == f"engine: cannot build it: {reason}; all that was said is in '{log}'"
    assert log.read_text().splitlines() == ["one", *said]
    installing._run(["true"], "cannot build it", log=log)
    assert not log.exists()


def pip(builds: str, environment: Environment) -> list[str]:
    return ["sh", "-c", STAND_IN % builds, str(environment.constraints)]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def test_the_log_of_a_build_lies_beside_the_environment(
    from_source: Environment, nothing_installed: Path, scratch: Path
) -> None:
    assert from_source.built is not None
    nothing_installed.mkdir(parents=True)
    kept = nothing_installed / "small.wheels"
    with pytest.raises(HarnessError, match=f"; all that was said is in '{nothing_installed / 'small.log'}'$"):
        installing._wheel(kept, from_source, from_source.built, pip("exit 1", from_source), scratch)


def test_what_was_built_is_kept_whole_or_not_at_all(
    from_source: Environment, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: Path, to: Path) -> NoReturn:
        (to / "built.whl" if to.is_dir() else to).write_text("ha")
        raise KeyboardInterrupt

    def wheel(folder: Path) -> Path:
        assert from_source.built is not None
        builds = pip('mkdir "$5" && echo whole >"$5/built.whl"', from_source)
        return installing._wheel(tmp_path / "small.wheels", from_source, from_source.built, builds, folder)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copy2", killed)
        with pytest.raises(KeyboardInterrupt):
            wheel(scratch)
    another = tmp_path / "another"
    another.mkdir()
    assert wheel(another).read_text() == "whole\n"
    assert wheel(tmp_path / "none").read_text() == "whole\n"


@pytest.mark.usefixtures("from_source")
def test_an_install_that_is_asked_to_end_ends_what_it_has_started_and_leaves_no_folder(
    nothing_installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, end, in_main = tmp_path / "temporary", tmp_path / "end", threading.main_thread().ident
    temporary.mkdir()
    os.mkfifo(end)
    for name, text in (("python", f"#!/bin/sh\n{VENV}"), ("pip", PIP.format(tests=shlex.quote(str(tmp_path))))):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(installing.sys, "executable", str(tmp_path / "python"))
    found: list[Path] = []

    def ask() -> None:
        with end.open("w") as compiler:
            found.extend(temporary.rglob("left by pip"))
            assert in_main is not None
            signal.pthread_kill(in_main, signal.SIGTERM)
            polled = select.poll()
            polled.register(compiler, 0)
            polled.poll()  # until nobody reads any more

    asks = threading.Thread(target=ask, daemon=True)
    asks.start()
    with Raised(), pytest.raises(Interrupted):
        installing.install("small")
    asks.join(20)
    assert not asks.is_alive()
    assert [bool(SCRATCH_NAME.fullmatch(path.parent.name)) for path in found] == [True]
    assert list(temporary.iterdir()) == []
    assert [path.name for path in nothing_installed.iterdir()] == ["small.lock"]


def test_cmake_4_takes_what_the_gloo_in_horovod_asks_for() -> None:
    built = HOROVOD.environment.built
    assert built is not None
    assert built.variables["CMAKE_POLICY_VERSION_MINIMUM"] == "3.5"
    assert built.tools == ("cmake", "g++", "make")


def test_a_tool_that_its_build_lacks_is_named_before_anything_is_made(
    from_source: Environment, nothing_installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert from_source.built is not None
    without = from_source._replace(built=from_source.built._replace(tools=("true", "no-such-tool")))
    monkeypatch.setattr(installing, "environments", lambda: {"small": without})
    with pytest.raises(HarnessError, match="'built' is built from source: install no-such-tool"):
        installing.install("small")
    assert not list(nothing_installed.glob("small?*/*"))


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_an_environment_is_made_from_the_pins_and_sealed(nothing_installed: Path) -> None:
    folder, interpreter = installing.install("small")
    assert folder == nothing_installed / "small"
    assert interpreter.packages == {"needed": "1.0"}
    assert (folder / SEAL).is_file()
    assert not sysconfig.get_path("purelib").startswith(str(folder))


@pytest.mark.slow
def test_pins_that_nobody_has_leave_no_environment_and_pips_own_word(
    small: Environment, nothing_installed: Path
) -> None:
    small.constraints.write_text("needed==2.0\n")
    with pytest.raises(HarnessError, match="engine: pip cannot install it: ") as caught:
        installing.install("small")
    assert caught.value.exit_code == 4
    assert list(nothing_installed.glob("small*")) == [nothing_installed / "small.lock"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["small", "small.old"], ids=["there", "left aside by one that was killed"])
def test_where_it_cannot_be_made_anew_the_environment_of_before_is_left(
    nothing_installed: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (nothing_installed / name).mkdir(parents=True)
    (nothing_installed / name / SEAL).write_text("of before\n")
    monkeypatch.setattr(installing.sys, "executable", "/bin/false")
    with pytest.raises(HarnessError, match="engine: cannot make an environment"):
        installing.install("small")
    assert (nothing_installed / "small" / SEAL).read_text() == "of before\n"


@pytest.mark.usefixtures("small")
def test_a_python_that_makes_no_environments_says_so(nothing_installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing.sys, "executable", "/bin/false")
    with pytest.raises(HarnessError, match="engine: cannot make an environment: it did not say why"):
        installing.install("small")
    assert not (nothing_installed / "small").exists()


@pytest.mark.usefixtures("small")
def test_two_do_not_install_at_once() -> None:
    with installing._alone(folder_of("small")), pytest.raises(UsageError, match="another process is installing in"):
        installing.install("small")


def test_what_an_installer_that_is_killed_has_started_keeps_others_out_until_it_is_through(tmp_path: Path) -> None:
    """The lock is let go of in this process as the system does for one that is killed."""
    folder, end = folder_of("small"), tmp_path / "end"
    os.mkfifo(end)
    pip = threading.Thread(target=installing._run, args=(["cat", str(end)], "cannot end"))
    with installing._alone(folder):
        pip.start()
        program_runs = end.open("w")
    with program_runs, pytest.raises(UsageError, match="another process is installing in"), installing._alone(folder):
        pass
    pip.join()
    with installing._alone(folder):
        pass


@pytest.mark.usefixtures("small")
def test_a_full_disk_with_locks_or_without_is_one_line_and_the_environment_of_before_is_left(
    nothing_installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fresh: Path, _: Environment) -> None:
        fresh.mkdir()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    (nothing_installed / "small").mkdir(parents=True)
    monkeypatch.setattr(installing, "_fill", full)
    where = re.escape(str(nothing_installed))
    with pytest.raises(HarnessError, match=f"^engine: cannot install 'small' in '{where}': No space left on device$"):
        installing.install("small")
    assert sorted(path.name for path in nothing_installed.iterdir()) == ["small", "small.lock"]
    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(HarnessError, match=f"^engine: cannot install 'small' in '{where}': No space left on device$"):
        installing.install("small")


def test_the_environment_of_before_goes_only_once_the_new_one_stands_in_its_place(tmp_path: Path) -> None:
    folder, fresh = tmp_path / "small", tmp_path / "small.new"
    for made, text in ((folder, "of before"), (fresh, "new")):
        made.mkdir()
        (made / SEAL).write_text(text)
    with pytest.raises(OSError, match="No such file"):
        installing._replace(folder, tmp_path / "none")
    assert (folder / SEAL).read_text() == "of before"
    folder.rename(tmp_path / "small.old")  # by one that was killed
    with pytest.raises(OSError, match="No such file"):
        installing._replace(folder, tmp_path / "none")
    assert (folder / SEAL).read_text() == "of before"
    installing._replace(folder, fresh)
    assert (folder / SEAL).read_text() == "new"
    assert list(tmp_path.iterdir()) == [folder]
