"""Which differences between two machines forbid a comparison, and which are only told."""

import pytest

from harness.environment import Change, Fact, difference

FACTS: dict[str, Fact] = {
    "cpu.model": "AMD EPYC 9654",
    "cpu.usable_cores": 8,
    "cpu.quota_cores": None,
    "cpu.governor": "performance",
    "cpu.turbo": None,
    "memory.total_bytes": 64_000_000_000,
    "package.tensorflow": "2.21.0",
    "gpu.count": 1,
    "gpu.0.name": "H200",
    "gpu.0.power_limit_w": 700.0,
    "load.1min": 0.2,
}


def test_equal_facts_do_not_differ() -> None:
    assert difference(FACTS, dict(FACTS)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cpu.model", "AMD EPYC 7763"),
        ("cpu.usable_cores", 4),
        ("cpu.quota_cores", 4.0),
        ("cpu.governor", "powersave"),
        ("gpu.count", 0),
        ("gpu.0.name", "H100"),
        ("gpu.0.power_limit_w", 400.0),
        ("env.OMP_NUM_THREADS", "1"),
    ],
)
def test_what_decides_speed_forbids_the_comparison(key: str, value: Fact) -> None:
    assert difference(FACTS, FACTS | {key: value}) == [Change(key, FACTS.get(key), value, "refuse")]
    assert difference(FACTS | {key: value}, FACTS) == [Change(key, value, FACTS.get(key), "refuse")]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("package.tensorflow", "2.22.0"),
        ("package.nvidia-nccl-cu12", "2.27"),
        ("env.XLA_FLAGS", "--x"),
        ("git.revision", "abc"),
        ("machine.id", "x"),
        ("os.release", "6.1"),
        ("cpu.turbo", True),
        ("memory.total_bytes", 32_000_000_000),
    ],
)
def test_what_may_be_the_thing_compared_or_is_unknown_on_one_side_is_a_note(key: str, value: Fact) -> None:
    assert difference(FACTS, FACTS | {key: value}) == [Change(key, FACTS.get(key), value, "note")]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("load.1min", 7.0),
        ("memory.total_bytes", 63_900_000_000),
        ("memory.available_bytes", 5),
        ("cpu.steal_fraction", 0.5),
        ("gpu.0.temperature_c", 80),
        ("gpu.0.sm_clock_mhz", 345),
        ("gpu.0.throttle_reasons", "too hot"),
    ],
)
def test_conditions_of_the_moment_are_not_differences(key: str, value: Fact) -> None:
    assert difference(FACTS, FACTS | {key: value}) == []


def test_those_that_forbid_come_first_and_read_as_a_change() -> None:
    changes = difference(FACTS, FACTS | {"a.b": True, "cpu.usable_cores": 2, "package.tensorflow": "3"})
    assert [str(change) for change in changes] == [
        "cpu.usable_cores: 8 → 2",
        "a.b: unknown → yes",
        "package.tensorflow: 2.21.0 → 3",
    ]


def test_true_is_not_the_number_one() -> None:
    assert difference({"x": True}, {"x": 1}) == [Change("x", True, 1, "note")]
