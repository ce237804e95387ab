"""What the parent adds to a cell before a trial of it is asked for."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.record.manifest import DeviceRecord
from harness.run import request
from harness.run.request import asked_matrix, data_dir_of, request_for
from harness.run.runner import new_manifest
from harness.spec.catalogue import DeviceTraits
from harness.spec.sweep import Sweep
from harness.trial.engines import catalogue_of
from tests.record.examples import cell


def test_the_folder_of_data_follows_the_xdg_convention(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_dir_of(Sweep()) == tmp_path / "tf-distribute-harness"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_dir_of(Sweep()) == tmp_path / ".cache" / "tf-distribute-harness"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("file", "it is a file, no folder"),
        ("device", "it is a device, no folder"),
        ("pipe", "it is a pipe, no folder"),
        ("dangling", "it is a link that leads nowhere"),
        ("file/below", "file' is a file, no folder"),
    ],
)
def test_where_no_folder_of_data_can_be_is_told_before_anything_starts(tmp_path: Path, kind: str, says: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "device").symlink_to("/dev/null")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=rf"^data_dir: given '{tmp_path / kind}', expected a folder: .*{says}$"):
        data_dir_of(Sweep(data_dir=str(tmp_path / kind)))
    assert data_dir_of(Sweep(data_dir=str(tmp_path / "new" / "folder"))) == tmp_path / "new" / "folder"


def test_a_data_set_that_lies_prepared_need_not_be_known(tmp_path: Path) -> None:
    sweep = Sweep(strategy=["none"], data=["tfds:of_our_own"], data_dir=str(tmp_path))
    with pytest.raises(UsageError, match="has no 'of_our_own'"):
        asked_matrix(sweep)
    (tmp_path / "of_our_own" / "1.0.0").mkdir(parents=True)
    assert {cell.data_set for cell in asked_matrix(sweep).cells} == {"tfds:of_our_own"}


def test_what_data_sets_other_hosts_have_is_not_asked_here(tmp_path: Path) -> None:
    sweep = Sweep(strategy=["none"], data=["tfds:of_theirs"], data_dir=str(tmp_path), launcher="attach")
    assert {cell.data_set for cell in asked_matrix(sweep).cells} == {"tfds:of_theirs"}


@pytest.mark.parametrize(("cores", "threads"), [(None, 0), (4, 1)])
def test_a_device_of_fewer_cores_than_a_process_could_have_has_one_thread_whatever_its_kind_is_called(
    cores: int | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = DeviceTraits("some-cpu", "", on_processors=True, cores=cores)
    known = replace(catalogue_of(), devices={"some-cpu": kind})
    monkeypatch.setattr(request, "catalogue_of", lambda _: known)
    assert request_for(cell(device="some-cpu"), Sweep(), Path()).intra_op_threads == threads


def test_a_manifest_keeps_what_its_device_kinds_are_by_their_engines() -> None:
    own = "benchmarks.own_engine:Means"
    cells = [cell(device="thread", engine=own), cell(device="virtual-cpu"), cell(device="gpu")]
    made = new_manifest("made", [], Sweep(engine=["tensorflow", own]), cells, plans=[])
    assert made.devices == {
        "gpu": DeviceRecord(),
        "thread": DeviceRecord(on_processors=True),
        "virtual-cpu": DeviceRecord(on_processors=True, virtual=True),
    }
