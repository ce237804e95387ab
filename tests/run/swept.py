"""The cells of sweeps on a fake zygote, two that compete and their base case, and what listens to their progress."""

from harness.record import TrialRecord
from harness.run.progress.base import Quiet
from harness.spec.bases import base_of
from tests.record.examples import cell

TWO, THREE = cell(), cell(replicas=3, global_batch_size=96)
BASE = base_of(TWO)
CELLS = [BASE, TWO, THREE]


class Listening(Quiet):
    """Counts as the progress lines do."""

    def __init__(self) -> None:
        self.done = self.total = 0

    def started(self, run_id: str, total: int, estimate_s: float, unknown: str = "") -> None:
        self.total, self.done = total, 0

    def ended(self, record: TrialRecord) -> None:
        self.done += 1

    def skipped(self, trials: int) -> None:
        self.total -= trials

    def more(self, trials: int) -> None:
        self.total += trials
