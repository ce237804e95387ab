"""How a decision between two sides is reached: margins, looks and caps."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.comparison.margins import choose_margins
from harness.analysis.estimates.looks import Looks
from harness.analysis.estimates.verdict import DELTA, Margins
from harness.environment import hardware
from harness.errors import UsageError
from harness.looks import MAX_BLOCKS, MOST_BLOCKS, QUIET_BLOCKS, looks_within
from harness.record.manifest import LooksRecord
from harness.record.store import RunStore
from harness.record.validation import ValidationRecord, find_validation
from harness.run.turns.steps import COST_S
from harness.spec.values import MOST_SECONDS

WINDOWING = {"window": 0.02, "windows": 100, "max_warmup": 5}
"""The keys of a spec that a comparison sets where nobody else does: many short turns instead of few long ones.

The noise of a window hardly depends on its length, down to some 16 ms; and as many of them as keep a decision
of twelve blocks under three minutes (`docs/verdicts.md`).
"""
OF_UNLIKE_STEPS = {"window": 0.1, "windows": 40, "max_warmup": 2}
"""The same for sides of which a step is not the same work, such as another batch: their windows are of equal time.

What a window costs beside its steps is then the same share of both, which with equal steps it is not: of 2 ms beside
windows of 20 and of 40 ms the second side would gain 5 %. Windows of whole steps are that equal from 0.1 s on.
"""


@dataclass(frozen=True)
class AbSettings:
    """How a decision is reached. UsageError on what no plan can follow."""

    margins: Margins
    looks: Sequence[int] = looks_within(MAX_BLOCKS)
    """Blocks after which it is looked at."""
    among: int = 1
    """Decisions that will be judged together."""
    time_s: float | None = None

    def __post_init__(self) -> None:
        looks = list(self.looks)
        if looks != sorted(set(looks)) or not looks or not 2 <= looks[0] <= looks[-1] <= MOST_BLOCKS:
            given = ",".join(map(str, looks))
            expected = f"rising numbers of blocks such as 5,8,12, from 2 to {MOST_BLOCKS}"
            raise UsageError(f"looks: given {given}, expected {expected}")
        if self.time_s is not None and not 0 < self.time_s <= MOST_SECONDS:
            raise UsageError(f"time: given {self.time_s}, expected seconds, above 0 and at most {MOST_SECONDS:g}")

    @property
    def max_blocks(self) -> int:
        """Those of the last look."""
        return self.looks[-1]

    def planned(self) -> LooksRecord:
        """When it is looked at and when it then stops, to be sealed."""
        looks = Looks.planned(self.looks, self.among)
        return LooksRecord(
            after=list(looks.after),
            different=list(looks.different),
            equivalent=list(looks.equivalent),
            window_cost_s=COST_S,
        )


def settings_for(
    results: Path,
    delta: float | None = None,
    epsilon: float | None = None,
    looks: Sequence[int] | None = None,
    max_blocks: int | None = None,
    time_s: float | None = None,
) -> AbSettings:
    """What is asked for; of the rest what is known of this machine, by a validation below `results`.

    δ and ε are shares, `time_s` seconds. UsageError on what no plan can follow.
    """
    if looks and max_blocks is not None:
        raise UsageError(
            "looks: given beside max_blocks, expected one of them: the last look ends a run, so that looks of 3 end it "
            "after 3 blocks"
        )
    validation = find_validation(results, hardware.facts().get("machine.id"))
    margins = choose_margins(validation, unpaired=False, delta=delta, epsilon=epsilon)
    most = most_blocks(validation) if max_blocks is None else max_blocks
    return AbSettings(margins, looks or looks_within(most), time_s=time_s)


def most_blocks(validation: ValidationRecord | None) -> int:
    """Fewer where this machine is known to be so quiet that δ need not be raised to its noise floor."""
    floor = None if validation is None else validation.floor()
    return MAX_BLOCKS if floor is None or floor > DELTA else QUIET_BLOCKS


def sealed_looks(store: RunStore) -> LooksRecord:
    """The looks of the plan of a run. UsageError for one that was planned in two stages, which is not gone on with."""
    looks = store.manifest.looks
    if looks is None:
        raise UsageError(
            f"--resume: '{store.path.name}' was begun by an older version, in two stages instead of looks; begin a new "
            f"one: python -m harness {store.manifest.what.kind.verb}"
        )
    return looks
