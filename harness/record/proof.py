"""What `doctor --prove` found on a machine: `proof-MACHINE-TIME.json` in a results folder, a sheet to keep."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from harness.record.bounds import Duration, Utc
from harness.record.manifest import Machine
from harness.record.model import RecordModel

ProofResult = Literal["passed", "failed", "unknown"]
"""`unknown` is what this machine cannot tell, and says why."""
Subject = Literal[
    "device",
    "host",
    "launcher",
    "cell",
    "clock",
    "memory",
    "copies",
    "arithmetic",
    "nccl",
    "out_of_memory",
    "fork_server",
]
"""What is asked: which devices, hosts and launchers answer, which cells are right, and what only hardware tells."""


class Proof(RecordModel):
    """One thing that was asked of the machine."""

    subject: Subject
    name: str
    """Of what: a cell's label, a device, a launcher."""
    device: str = ""
    """The device kind that it was asked of; empty where it is of none."""
    verdict: ProofResult
    words: str = ""
    """The evidence: what was measured, what failed, or why this machine cannot tell."""


class ProofRecord(RecordModel):
    """The whole of the file."""

    sheet: ClassVar = "proof"
    """What its file's name begins with."""
    schema_version: Literal[1] = 1
    machine_id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    created_utc: Utc
    harness_version: str
    seconds: Duration
    """What all of it took."""
    run_id: str
    """The run that has the cells' trials, in the same folder."""
    proofs: Annotated[list[Proof], Field(min_length=1)]
    machine: Machine
    """Facts of the machine then, versions among them."""

    def of(self, verdict: ProofResult) -> list[Proof]:
        """Those that came out so."""
        return [proof for proof in self.proofs if proof.verdict == verdict]
