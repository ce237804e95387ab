"""NCCL's own words, in logs as its users have published them."""

import os
from pathlib import Path

import pytest

from harness.run.process.startup import of_nvidia
from harness.trial import nccl

ONE_HOST = """\
job-0:5670:5810 [7] NCCL INFO NCCL version 2.22.3+cuda12.6
job-0:5670:5810 [7] NCCL INFO Channel 02/0 : 7[7] -> 0[0] via P2P/CUMEM
job-0:5669:5807 [6] NCCL INFO Channel 00/0 : 6[6] -> 5[5] via P2P/CUMEM
job-0:5669:5807 [6] NCCL INFO Connected all rings
"""
TWO_HOSTS = """\
ubuntu:9621:9692 [7] NCCL INFO Channel 14/0 : 15[7] -> 0[0] [send] via NET/Socket/0
ubuntu:39964:40050 [6] NCCL INFO Channel 09 : 6[6] -> 7[7] via SHM/direct/direct
host-06:4015539:4015652 [0] NCCL INFO Channel 07/0 : 0[0] -> 2[0] [receive] via NET/IB/3/GDRDMA
"""


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (ONE_HOST, "2.22.3: P2P/CUMEM"),
        (TWO_HOSTS, "NET/IB/GDRDMA, NET/Socket, SHM/direct/direct"),
        ("NCCL version 2.20.5+cuda12.4\n", "2.20.5"),
        ("", ""),
    ],
)
def test_the_version_and_the_ways_are_read_from_the_log(log: str, said: str) -> None:
    assert nccl.read(log) == said


def test_the_log_is_the_file_of_this_process(tmp_path: Path) -> None:
    environment = {nccl.FILE: str(tmp_path / "nccl-%p.log")}
    assert nccl.told(environment) == nccl.told({}) == ""
    (tmp_path / f"nccl-{os.getpid()}.log").write_text(ONE_HOST)
    assert nccl.told(environment) == "2.22.3: P2P/CUMEM"


def test_what_a_person_asked_of_nccl_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(nccl.LEVEL, raising=False)
    assert of_nvidia(tmp_path)[nccl.FILE] == str(tmp_path / "nccl-%p.log")
    monkeypatch.setenv(nccl.LEVEL, "WARN")
    assert set(of_nvidia(tmp_path)) == {"TF_CPP_MIN_LOG_LEVEL"}
