"""From flags and specs to two sides."""

from pathlib import Path

import pytest

from harness.cli._sides import read_sides
from harness.errors import UsageError
from harness.run.kinds.decision import OF_UNLIKE_STEPS, WINDOWING

FLAGS = {"strategy": "mirrored", "replicas": "2"}


def spec(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(f'name = "{name}"\n{text}\n')
    return path


def test_flags_are_for_both_sides_and_a_key_for_one() -> None:
    one, two = read_sides([], FLAGS, ["replicas=3"], [])
    assert (one.cell.strategy, one.cell.replicas) == ("mirrored", 3)
    assert (two.cell.strategy, two.cell.replicas) == ("mirrored", 2)


def test_one_spec_is_for_both_sides_and_flags_lie_over_it(tmp_path: Path) -> None:
    path = spec(tmp_path, "s", 'strategy = "mirrored"\nreplicas = [1, 2]\ntrials = 9\nseed = 7')
    one, two = read_sides([path], {"replicas": "4"}, ["optimizer=sgd"], [])
    assert [(side.cell.replicas, side.sweep.seed) for side in (one, two)] == [(4, 7), (4, 7)]
    assert (one.label, two.label) == ("optimizer=sgd", "optimizer=adam")


def test_of_two_specs_each_is_one_side(tmp_path: Path) -> None:
    paths = [spec(tmp_path, name, f"batch_size = {size}") for name, size in (("one", 32), ("two", 48))]
    one, two = read_sides(paths, FLAGS, [], [])
    assert (one.label, two.label) == ("batch_size=32", "batch_size=48")


def test_what_nobody_gave_is_as_a_comparison_wants_it(tmp_path: Path) -> None:
    path = spec(tmp_path, "s", "windows = 12")
    for specs, flags, expected in (([], {}, WINDOWING["windows"]), ([path], {}, 12), ([path], {"windows": "20"}, 20)):
        sides = read_sides(specs, flags)
        assert [side.sweep.windows for side in sides] == [expected, expected]


@pytest.mark.parametrize("key", WINDOWING)
def test_sides_of_which_a_step_is_not_the_same_work_have_longer_windows_unless_somebody_says(key: str) -> None:
    for b, expected in (("loop=fit", WINDOWING), ("batch_size=48", OF_UNLIKE_STEPS)):
        sides = read_sides([], FLAGS, [], [b])
        assert [getattr(side.sweep, key) for side in sides] == [expected[key]] * 2
    given = {"window": "0.05", "windows": "20", "max_warmup": "4"}
    for side in read_sides([], {**FLAGS, **given}, [], ["batch_size=48"]):
        assert getattr(side.sweep, key) == float(given[key])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"trials": "5"}, "--trials: both sides have one trial a block; for the most blocks give --max-blocks"),
        ({"time": "60"}, "--time: both sides have the same time"),
        ({"half_width": "0.01"}, "--half-width: a comparison has looks instead of stages"),
        ({"strategy": "none,mirrored"}, "side a: strategy: given none,mirrored, expected one value"),
        ({"replicas": "two"}, "replicas: given 'two', expected a whole number"),
    ],
)
def test_a_flag_that_no_side_can_have_is_answered_in_one_line(flags: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_sides([], flags)
    assert str(caught.value).startswith(message)


def test_a_third_spec_is_one_too_many(tmp_path: Path) -> None:
    path = spec(tmp_path, "s", "")
    with pytest.raises(UsageError, match="SPEC: given 3 files, expected one for both sides or one for each"):
        read_sides([path, path, path], {})
