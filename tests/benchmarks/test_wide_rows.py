"""The worked example's model and rows fit each other, and are the issue's at a thirty-second."""

import pytest

from tests.docs.printed import ROOT
from tests.docs.stated import section, states


@pytest.mark.slow
@pytest.mark.usefixtures("tf")
def test_the_rows_are_what_the_model_takes_and_both_are_a_thirty_second_of_the_issues() -> None:
    from benchmarks import wide_rows

    model, rows = wide_rows.make_model(), wide_rows.rows()
    row, target = rows.element_spec
    assert model.input_shape == (None, *row.shape) == (None, 344)
    assert [layer.units for layer in model.layers if hasattr(layer, "units")] == [512, 256, wide_rows.CLASSES]
    assert (target.shape, int(rows.cardinality())) == ((), wide_rows.ROWS)
    largest = max(int(label) for _, label in rows.take(500))
    assert largest < model.output_shape[-1]


def test_the_page_says_how_many_bytes_a_step_reads_and_adds_up_there() -> None:
    floats, widths, replicas, batch = 11_000, (16_384, 8_192), 8, 4_096
    weights = floats * widths[0] + widths[0] * widths[1]
    page = (ROOT / "docs" / "worked-example.md").read_text(encoding="utf-8")
    of_rows, of_gradients = (f"{4e-9 * count:.1f} GB" for count in (replicas * batch * floats, weights))
    assert states(section(page, "What only GPUs can tell"), of_rows, of_gradients)
