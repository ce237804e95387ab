"""What ratios are over: no strategy on one device, named so where the whole machine is a base case too."""

from harness.analysis import WorkloadSummary
from harness.analysis.pipelines import of_pipelines

OVER = "× no strategy"
"""The head of their column, where there is one base case without a strategy at a batch."""
OVER_MODEL = "× the model"


def has_whole_machine(work: WorkloadSummary) -> bool:
    """Whether a cell without a strategy had the whole machine."""
    return any(cell.trials.all_cores > 1 for cell in work.cells)


def whole_lacking(work: WorkloadSummary) -> str:
    """What no ranked cell without a strategy on the whole machine was: `measured and proved` where an unranked one had
    it, else `measured`."""
    return "measured and proved" if any(cell.trials.all_cores for cell in work.unranked) else "measured"


def over_base(work: WorkloadSummary) -> str:
    """The head of the column of speed-ups at the same batch; of input pipelines, of what they give to what is taken."""
    if of_pipelines(work):
        return OVER_MODEL
    return "× one device" if has_whole_machine(work) else OVER


def base_case(work: WorkloadSummary) -> str:
    """What curves and efficiencies are over."""
    return "no strategy on one device" if has_whole_machine(work) else "the no-strategy base case"
