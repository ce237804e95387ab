"""Starting a preloaded process: its folder, its variables, its files, and several that start side by side."""

import contextlib
from pathlib import Path

import pytest

from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote, ZygoteError
from tests.run.process.zygotes import gone
from tests.run.stubs import WITNESS, install, told_by


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Real zygotes with stubs for TensorFlow, in a folder that has a model and a `harness` of its own."""
    folder = tmp_path / "work here"
    folder.mkdir()
    (folder / "witness.py").write_text(WITNESS)
    (folder / "harness.py").write_text("raise RuntimeError('not this one')\n")
    install(tmp_path, monkeypatch)
    return folder


def test_with_a_path_the_working_folder_does_not_hide_the_harness(stubs: Path) -> None:
    with Zygote(Startup(folder=stubs, path=[stubs])) as zygote:
        assert zygote.versions["tensorflow"] == "0.1"
        told = told_by(zygote)
    assert told["file"] == str(stubs / "witness.py")
    assert told["folder"] == str(stubs)
    assert Path(told["harness"]).parts[-2:] == ("harness", "__init__.py")


def test_files_that_trials_write_for_the_moment_go_with_the_zygote(stubs: Path) -> None:
    with Zygote(Startup(folder=stubs, path=[stubs])) as zygote:
        temporary = Path(told_by(zygote)["temporary"])
        assert Path(zygote.scratch) in temporary.parents
        assert temporary.is_dir()
    assert not temporary.exists()


def test_variables_that_are_given_come_before_those_of_this_process(
    stubs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_FLAG", "ours")
    with Zygote(Startup({"SOME_FLAG": "given", "TMPDIR": str(tmp_path)}, folder=stubs, path=[stubs])) as zygote:
        told = told_by(zygote)
    assert told["environment"]["SOME_FLAG"] == "given"
    assert told["temporary"] == str(tmp_path)


def test_two_that_are_launched_first_start_side_by_side(stubs: Path) -> None:
    with contextlib.ExitStack() as stack:
        zygotes = [
            stack.enter_context(contextlib.closing(Zygote(Startup(folder=stubs, path=[stubs])))) for _ in range(2)
        ]
        for zygote in zygotes:
            zygote.launch()
        processes = [zygote._process for zygote in zygotes]
        for zygote in zygotes:
            zygote.start()
        assert [zygote._process for zygote in zygotes] == processes
        assert all(zygote.alive for zygote in zygotes)


def test_one_that_is_launched_and_never_started_leaves_nothing_behind(stubs: Path) -> None:
    zygote = Zygote(Startup(folder=stubs, path=[stubs]))
    zygote.launch()
    assert zygote._process is not None
    pid = zygote._process.pid
    zygote.close()
    assert gone(pid)
    assert not Path(zygote.scratch).exists()


def test_an_interpreter_that_cannot_be_started_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ZygoteError) as caught, Zygote(Startup(python=str(tmp_path / "python"))):
        pass
    assert str(caught.value) == f"{tmp_path / 'python'} cannot be started: No such file or directory"
