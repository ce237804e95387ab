"""What the series of a history are called: no two alike, and no longer than it takes to tell them apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.history.series import Series
from harness.report.page.trials.columns import labels_of
from harness.visible import printable


@dataclass(frozen=True)
class Names:
    """The names that hold among the series of one history."""

    cells: Mapping[str, str]
    """By cell id: the label, and where others share it the model, the data or whatever else differs."""
    machines: tuple[str, ...]
    """Every machine, once."""

    def of(self, series: Series) -> str:
        """`mirrored ×2 b64, × no strategy`."""
        kind = ", × no strategy" if series.measure == "speed-up" else ""
        return f"{self.cells[series.cell.cell_id]}{kind}"

    def whole(self, series: Series) -> str:
        """The same, with the machine where there are several."""
        return f"{self.of(series)} on {machine_of(series)}" if len(self.machines) > 1 else self.of(series)


def names_in(series: Sequence[Series]) -> Names:
    """The names of all of `series`."""
    cells = {one.cell.cell_id: one.cell for one in series}
    labels = labels_of(list(cells.values()))
    machines = dict.fromkeys(machine_of(one) for one in series)
    return Names(dict(zip(cells, labels, strict=True)), tuple(machines))


def machine_of(series: Series) -> str:
    """The machine, as a person would know it again."""
    return printable(f"{series.processor} ({series.machine})")
