"""Two clocks: wall time decides, processor time beside it says what kind of difference it is.

CPU seconds of each example, token or byte (user + system time of all of a trial's processes) are measured in the same
windows as wall time, and judged by the same rule. Wall time is what a person waits for, so it gives the
verdict; processor time tells a change that computes more from one that waits more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis.estimates.intervals import Interval, Sample
from harness.analysis.estimates.verdict import Judgement
from harness.record.trial import TrialRecord

CpuVerdict = Literal["less", "more", "equivalent", "undecided", "invalid"]
CPU_WORDS: dict[str, CpuVerdict] = {
    "faster": "less",
    "slower": "more",
    "equivalent": "equivalent",
    "undecided": "undecided",
    "invalid": "invalid",
}


@dataclass(frozen=True)
class Verdicts:
    """What both clocks say of one comparison. `cpu` is None where processor time was not recorded."""

    wall: Judgement
    cpu: Judgement | None = None
    """Judged on what is done per CPU second, so that "faster" means less processor time."""

    @property
    def cpu_verdict(self) -> CpuVerdict | None:
        """Whether B takes less or more processor time for the same work than A."""
        return None if self.cpu is None else CPU_WORDS[self.cpu.verdict]

    @property
    def cpu_ratio(self) -> Interval | None:
        """CPU seconds for the same work, B over A, with its 95 % interval."""
        return None if self.cpu is None or self.cpu.ratio is None else self.cpu.ratio.inverted()

    @property
    def disagreement(self) -> str | None:
        """What it means when the clocks differ; None while they agree or one cannot say."""
        return _DISAGREEMENTS.get((self.wall.verdict, self.cpu_verdict or ""))


_DISAGREEMENTS: dict[tuple[str, str], str] = {
    ("slower", "equivalent"): "slower, with no more processor time: B waits more (input, locks, a straggler), "
    "it does not compute more",
    ("slower", "less"): "slower, with less processor time: B waits more, or uses fewer cores",
    ("equivalent", "more"): "no slower, but with more processor time: B keeps more cores busy for the same speed",
    ("equivalent", "less"): "no faster, but with less processor time: B leaves more of the cores free",
    ("undecided", "more"): "more processor time: B computes more, whether or not that costs time here",
    ("undecided", "less"): "less processor time: B computes less, whether or not that saves time here",
    ("faster", "more"): "faster, with more processor time: B buys its speed with more cores",
    ("faster", "equivalent"): "faster, with the same processor time: B waits less or spreads the work better",
}


def cpu_sample(trials: Sequence[TrialRecord], groups: Sequence[str]) -> Sample | None:
    """x_p = −ln(CPU seconds of each) of each trial; None unless every trial has a positive figure.

    On a machine whose clock of processor time is too coarse to see a window the figure is zero, and
    the second clock says nothing.
    """
    figures = [trial.cpu_seconds_each for trial in trials]
    if not figures or any(figure is None or figure <= 0 for figure in figures):
        return None
    values = tuple(-math.log(figure) for figure in figures if figure is not None)
    return Sample(values, tuple(groups), tuple(trial.block for trial in trials))
