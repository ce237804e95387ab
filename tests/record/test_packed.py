"""Records that are kept compressed are read as they are, and a file that only looks like one is refused by name."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import StorageError
from harness.record import RunStore, list_runs, load_run, resolve_run
from harness.record.faults import FAULTS_NAME
from harness.record.log import RecordLog, load_records
from harness.record.packed import ALWAYS_READ
from harness.record.trial import TrialRecord
from tests.record.examples import RUN_ID, manifest, trial


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A run of three trials, as it was written."""
    with RunStore.create(tmp_path / "plain", manifest()) as store:
        for block in range(3):
            store.append(trial(block))
    return store.path


@pytest.fixture
def packed(plain: Path, tmp_path: Path) -> Path:
    """The same run, its trials compressed."""
    folder = tmp_path / "packed" / plain.name
    shutil.copytree(plain, folder)
    file = folder / "trials.jsonl"
    (folder / "trials.jsonl.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    file.unlink()
    return folder


def test_a_run_whose_trials_are_compressed_is_read_listed_and_found_as_one_that_is_not(
    plain: Path, packed: Path
) -> None:
    one, other = load_run(plain), load_run(packed)
    assert (other.trials, other.torn) == (one.trials, False)
    assert len(other.trials) == 3
    [listed] = list_runs(packed.parent)
    assert (listed.trials, listed.problem) == (3, None)
    assert resolve_run(str(packed / "trials.jsonl.gz"), packed.parent) == packed


def test_a_record_of_a_compressed_file_that_is_wrong_is_named_by_its_line(packed: Path) -> None:
    file = packed / "trials.jsonl.gz"
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()).replace(b'"block":1', b'"block":-1')))
    with pytest.raises(StorageError) as caught:
        load_run(packed)
    assert str(caught.value).startswith(f"{file}:2: block: given -1")


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _changed(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


def _something_else(file: Path) -> None:
    file.write_bytes(b"no gzip file at all\n")


def _a_bomb(file: Path) -> None:
    file.write_bytes(gzip.compress(bytes(ALWAYS_READ + 1)))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_cut, "damaged gzip file"),
        (_changed, "damaged gzip file"),
        (_something_else, "damaged gzip file"),
        (_a_bomb, "larger than any records of its size"),
    ],
)
def test_a_compressed_file_that_holds_no_records_is_one_line_with_its_name(
    packed: Path, spoil: Callable[[Path], None], said: str
) -> None:
    file = packed / "trials.jsonl.gz"
    spoil(file)
    with pytest.raises(StorageError) as caught:
        load_run(packed)
    assert str(caught.value).startswith(f"cannot read '{file}': it is a damaged" if "damaged" in said else "cannot")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert said in (list_runs(packed.parent)[0].problem or "")


def test_records_that_are_there_both_plain_and_compressed_are_refused(plain: Path, packed: Path) -> None:
    shutil.copy(plain / "trials.jsonl", packed)
    with pytest.raises(StorageError, match=r"there twice, plain and as trials\.jsonl\.gz"):
        load_run(packed)


def test_nothing_is_appended_beside_compressed_records(packed: Path) -> None:
    before = sorted(path.name for path in packed.iterdir())
    with pytest.raises(StorageError, match="unpack it first"):
        RunStore.open_for_resume(packed)
    assert sorted(path.name for path in packed.iterdir()) == before


def test_records_that_are_no_trials_are_read_compressed_too(packed: Path) -> None:
    (packed / "trials.jsonl.gz").rename(packed / f"{FAULTS_NAME}.gz")
    assert [record.run_id for record in load_records(TrialRecord, packed, FAULTS_NAME)] == [RUN_ID] * 3
    with pytest.raises(StorageError, match="unpack it first"):
        RecordLog(packed, FAULTS_NAME)
