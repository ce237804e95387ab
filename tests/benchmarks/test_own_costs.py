"""The steps that `own_costs.py` sets against today's: each holds what it is named for, and both train by turns."""

from pathlib import Path
from typing import Any

import pytest

from harness.engines.tensorflow.loops.custom import CustomLoop
from harness.engines.tensorflow.loops.fit import FitLoop
from tests.engines.tensorflow.fitted import Paced, ops, training
from tests.goals import load

of = load("own_costs")


def trained(loop: Any) -> Any:
    """The loop after a few steps."""
    loop.run(Paced([1, 1, 2]))
    return loop


def by_examples(tf: Any, replicas: int, tmp_path: Path) -> Any:
    """A training whose loss has a value an example, as the custom loop takes it."""
    import keras

    made = training(tf, replicas, tmp_path)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
    return type(made)(**{**vars(made), "loss": loss})


def on_host(tf: Any, tmp_path: Path) -> Any:
    """A training whose pipeline can be built."""
    made = training(tf, 1, tmp_path)
    made.request.scratch = ""
    return made


def test_the_losses_are_added_up_in_one_step_and_not_in_the_other(tf: Any, tmp_path: Path) -> None:
    before, now = (trained(kind(by_examples(tf, 2, tmp_path))) for kind in (of.LossAddedUp, CustomLoop))
    assert len(before.program().outputs) == 1
    assert len(now.program().outputs) == 2


def test_without_batches_ready_the_pipelines_come_as_they_are(tf: Any, tmp_path: Path) -> None:
    made = training(tf, 1, tmp_path)
    dataset = tf.data.Dataset.range(3)
    assert of.NothingReady(made)._training.distributed(dataset) is dataset
    assert made.distributed(dataset) is not dataset


def test_data_from_the_host_come_by_an_iterator_and_those_on_the_device_do_not(tf: Any, tmp_path: Path) -> None:
    before, now = (trained(kind(on_host(tf, tmp_path))) for kind in (of.DataOnHost, FitLoop))
    assert "IteratorGetNext" in ops(before.program())
    assert "IteratorGetNext" not in ops(now.program())


def test_without_a_callback_fit_trains_as_many_steps_and_ends(tf: Any, tmp_path: Path) -> None:
    loop = of.NoCallback(training(tf, 1, tmp_path))
    pace = Paced([1, 1, 3])
    loop.run(pace)
    assert loop._training.optimizer.iterations.numpy() == 5
    assert len(pace.losses) == 3


def test_loops_take_turns_and_what_goes_wrong_in_one_is_raised_where_its_window_is_waited_for(
    tf: Any, tmp_path: Path
) -> None:
    loops = [kind(on_host(tf, tmp_path)) for kind in (of.DataOnHost, FitLoop)]
    forms = [of.Turns(loop) for loop in loops]
    for _ in range(2):
        for form in forms:
            taken, processors = form.window(3)
            assert taken > 0
            assert processors > 0
    assert [int(loop._training.optimizer.iterations.numpy()) for loop in loops] == [6, 6]

    class Broken(FitLoop):
        def run(self, pace: Any) -> None:
            pace.begin()
            raise ValueError("so it is")

    with pytest.raises(ValueError, match="so it is"):
        of.Turns(Broken(training(tf, 1, tmp_path))).window(1)
    for form in forms:
        form._asked.put(0)
