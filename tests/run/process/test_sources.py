"""Source that is changed while a run is under way is noticed, and what was only written anew is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.run.process import sources
from harness.run.process.sources import OURS, Sources, digest_of
from harness.spec.work import OwnStepCell
from tests.record.examples import cell

TEXT = "a = 1\n"
OTHER = "a = 2\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a package of its own as this harness."""
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "package"
    (package / "below").mkdir(parents=True)
    (package / "below" / "module.py").write_text(TEXT)
    monkeypatch.setattr(sources, "PACKAGE", package)
    monkeypatch.setattr(sources, "source_digest", lambda: digest_of(package))
    return tmp_path


@pytest.mark.parametrize(
    ("named", "file", "called"),
    [
        ({"model": "mine:make"}, "mine.py", "mine"),
        ({"model": "mine:make(layers=2)"}, "mine/__init__.py", "mine"),
        ({"model": "mine.nets:make", "data": "mine.nets:examples"}, "mine/nets.py", "mine.nets"),
    ],
)
def test_a_module_that_is_written_anew_is_changed_once_it_has_other_text(
    here: Path, named: dict[str, str], file: str, called: str
) -> None:
    (here / file).parent.mkdir(exist_ok=True)
    (here / file).write_text(TEXT)
    seen = Sources([cell(**named), cell(**named, replicas=3, global_batch_size=96)])
    assert seen.changed() == []
    written(here / file, TEXT)
    assert seen.changed() == []
    written(here / file, OTHER)
    assert seen.changed() == [called]
    written(here / file, OTHER + OTHER)
    assert seen.changed() == []


def test_a_script_is_followed_whatever_its_arguments(here: Path) -> None:
    (here / "train.py").write_text(TEXT)
    seen = Sources([OwnStepCell(step="train.py --epochs 3")])
    written(here / "train.py", OTHER)
    assert seen.changed() == ["train.py"]


@pytest.mark.parametrize(
    "change",
    [
        lambda package: written(package / "below" / "module.py", OTHER),
        lambda package: (package / "below" / "new.py").write_text(TEXT),
        lambda package: (package / "below" / "module.py").unlink(),
    ],
)
def test_the_harness_is_changed_with_any_of_its_modules(here: Path, change: Callable[[Path], object]) -> None:
    seen = Sources([cell()])
    written(here / "package" / "below" / "module.py", TEXT)
    assert seen.changed() == []
    change(here / "package")
    assert seen.changed() == [OURS]


def test_code_that_lies_nowhere_known_is_passed_over() -> None:
    assert Sources([cell(model="nowhere:make")]).changed() == []


def written(file: Path, text: str) -> None:
    """Write it, at another time than before."""
    before = file.stat().st_mtime_ns
    while file.stat().st_mtime_ns == before:
        file.write_text(text)


def test_a_folder_that_is_being_written_anew_is_looked_at_again_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Sources([])
    with monkeypatch.context() as gone:
        gone.setattr(sources, "_files", lambda _: (_ for _ in ()).throw(FileNotFoundError("a folder of it")))
        assert seen.changed() == []
    assert seen.changed() == []
