"""Runs whose answer is told, and what is said of them."""

from harness.analysis import summarise
from harness.record.trial import TrialRecord
from harness.report.words.answer import answer_lines
from harness.spec.cell import trained
from harness.spec.work import Cell
from tests.comparisons import scaled
from tests.synthetic import failed, make_cell, make_run


def said(*args: object, **kwargs: object) -> str:
    return "\n".join(answer_lines(summarise(*make_run(*args, **kwargs))))  # type: ignore[arg-type]


def no_base_in_half(record: TrialRecord) -> TrialRecord:
    """In float32 distributing does not pay; two replicas in bfloat16 are the fastest, and its base case died."""
    cell = trained(record.cell)
    if cell.precision == "float32":
        return scaled(record, 1.0 if cell.is_base else 4.0)
    return failed(record, "crashed", "signal 11") if cell.is_base else scaled(record, 0.1)


def half_and_whole(device: str = "gpu") -> list[Cell]:
    return [
        make_cell(*of, device=device, precision=precision)
        for of in (("none",), ("mirrored", 2))
        for precision in ("float32", "mixed_bfloat16")
    ]
