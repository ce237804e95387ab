"""Synthetic series of trials and their windows, with known truth, for `coverage.py` and the tests.

A window's step time is, on the log scale, the sum of three things: what the machine does at that moment,
which all who take turns then share; the trial's own deviation; and the window's own. `SERIES` differ in these.
Sizes are those of the shared two-core machine of `docs/protocol.md#turns`: a paired standard deviation of
about 1.7 %, and a machine that wanders by several per cent from block to block.

Side B's throughput is exp(`THETA`) times side A's in every series.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Chance = np.random.Generator

THETA = math.log(0.97)
"""ln(X_b/X_a): B's throughput is 3 % below A's."""
STEP_S = 0.01
OWN = 0.010
"""Standard deviation of a trial's own speed."""
WINDOW = 0.03
"""Standard deviation of a single window."""
WINDOWS = 20


def taking_turns(blocks: int, windows: int = WINDOWS) -> Array:
    """When each window is taken: (2 sides, blocks, windows), in blocks. Both sides in one group."""
    return _turns(np.arange(float(blocks)), windows, 2)


def in_two_groups(blocks: int, windows: int = WINDOWS) -> Array:
    """(4, blocks, windows): the base case with side A in a block's first group, and with side B in its second.

    The order of the first axis is A, B, base beside A, base beside B.
    """
    starts = np.arange(float(blocks))
    first, second = _turns(starts, windows, 2), _turns(starts + 0.5, windows, 2)
    return np.stack([first[0], second[0], first[1], second[1]])


def alternating(blocks: int, windows: int = WINDOWS) -> Array:
    """(2, blocks, windows): A's trial, then B's, then A's: never alive together."""
    starts = np.arange(float(blocks))
    return np.concatenate([_turns(starts, windows, 1), _turns(starts + 0.5, windows, 1)])


def one_run_after_the_other(blocks: int, windows: int = WINDOWS) -> Array:
    """(2, blocks, windows): all of A's trials, then all of B's, as `compare` of two runs has them."""
    starts = np.arange(float(blocks))
    return np.concatenate([_turns(starts, windows, 1), _turns(starts + blocks, windows, 1)])


def _turns(starts: Array, windows: int, members: int) -> Array:
    """Windows of `members` trials that share 0.4 of a block, each round in the other order."""
    rounds = np.arange(windows)
    place = np.stack([(member + rounds) % members for member in range(members)])
    within = 0.4 * (rounds + place / members) / windows
    return starts[None, :, None] + within[:, None, :]


@dataclass(frozen=True)
class Series:
    """How a machine, its trials and its windows behave."""

    name: str
    words: str
    common: Callable[[Chance, int, Array], Array]
    """(chance, repetitions, times) → log deviation of the machine, (repetitions, *times.shape)."""
    own: Callable[[Chance, tuple[int, ...]], Array]
    """Log deviation of each trial, in the shape given."""
    window: Callable[[Chance, tuple[int, ...]], Array]
    """Log deviation of each window; the last axis is time within the trial."""
    felt_by_b: float = 1.0
    """How much of the machine's deviation side B feels; A and the base feel all of it."""

    def step_times(self, chance: Chance, repetitions: int, times: Array) -> Array:
        """Step time in seconds of every window: (repetitions, sides, blocks, windows); side 1 is B."""
        logs = self.common(chance, repetitions, times)
        logs[:, 1:2] *= self.felt_by_b
        logs += self.own(chance, logs.shape[:3])[..., None]
        logs += self.window(chance, logs.shape)
        logs[:, 1:2] -= THETA
        return STEP_S * np.exp(logs)

    @functools.cache  # noqa: B019  there are few, and they live as long as the program
    def cell_truth(self) -> float:
        """ln(1/τ) of side A in the long run, from 200,000 independent trials."""
        chance = np.random.default_rng(0)
        times = taking_turns(1)[:1]
        return float(np.mean([log_throughput(self.step_times(chance, 20_000, times)) for _ in range(10)]))


def log_throughput(step_times: Array) -> Array:
    """ln(1/τ) of each trial, τ the arithmetic mean over the last axis, its windows."""
    rates: Array = -np.log(step_times.mean(axis=-1))
    return rates


def _still(_: Chance, repetitions: int, times: Array) -> Array:
    return np.zeros((repetitions, *times.shape))


def _linear(chance: Chance, repetitions: int, times: Array) -> Array:
    """Up or down by at most 1 % a block; the truth is the speed in the middle of the measurement."""
    slopes = chance.uniform(-0.01, 0.01, repetitions)
    deviations: Array = np.multiply.outer(slopes, times - times.mean())
    return deviations


def _sine(chance: Chance, repetitions: int, times: Array) -> Array:
    """±8 % with a period of 30 blocks, which an hour's work of the neighbours may look like."""
    phases = chance.uniform(0, 2 * math.pi, repetitions)
    deviations: Array = 0.08 * np.sin(np.add.outer(phases, 2 * math.pi * times / 30))
    return deviations


def _wandering(chance: Chance, repetitions: int, times: Array) -> Array:
    """First-order autoregression in continuous time: 5 %, correlation 0.7 from a block to the next."""
    moments, back = np.unique(times, return_inverse=True)
    states = np.empty((repetitions, len(moments)))
    states[:, 0] = 0.05 * chance.standard_normal(repetitions)
    for place, step in enumerate(np.diff(moments), start=1):
        kept = 0.7**step
        fresh = 0.05 * math.sqrt(1 - kept**2) * chance.standard_normal(repetitions)
        states[:, place] = kept * states[:, place - 1] + fresh
    return states[:, back.reshape(times.shape)]


def _normal(deviation: float) -> Callable[[Chance, tuple[int, ...]], Array]:
    return lambda chance, shape: deviation * chance.standard_normal(shape)


def _two_states(share: float) -> Callable[[Chance, tuple[int, ...]], Array]:
    """A trial is 4 % slower with probability `share`, beside a deviation of a quarter of the usual."""

    def draw(chance: Chance, shape: tuple[int, ...]) -> Array:
        slow = chance.random(shape) < share
        return 0.04 * slow + OWN / 4 * chance.standard_normal(shape)

    return draw


def _correlated_windows(chance: Chance, shape: tuple[int, ...]) -> Array:
    """First-order autoregression with 0.7 from a window to the next."""
    noise = WINDOW * chance.standard_normal(shape)
    for place in range(1, shape[-1]):
        noise[..., place] = 0.7 * noise[..., place - 1] + math.sqrt(1 - 0.7**2) * noise[..., place]
    return noise


def _seen_windows(chance: Chance, shape: tuple[int, ...]) -> Array:
    """As on the shared machine: 7 to 15 % by trial, heavy tails (t with 3), 0.5 from a window to the next."""
    noise = chance.standard_t(3, shape) / math.sqrt(3)
    for place in range(1, shape[-1]):
        noise[..., place] = 0.5 * noise[..., place - 1] + math.sqrt(1 - 0.5**2) * noise[..., place]
    found: Array = chance.uniform(0.07, 0.15, (*shape[:-1], 1)) * noise
    return found


def _heavy(deviation: float) -> Callable[[Chance, tuple[int, ...]], Array]:
    return lambda chance, shape: deviation * chance.standard_t(3, shape) / math.sqrt(3)


def _spiky_windows(chance: Chance, shape: tuple[int, ...]) -> Array:
    """One window in twenty takes longer, by a Pareto share with index 2.5 from 20 % up: stragglers."""
    spiked = chance.random(shape) < 0.05
    sizes = np.log1p(0.2 * (1 + chance.pareto(2.5, shape)))
    return WINDOW / 3 * chance.standard_normal(shape) + spiked * sizes


SERIES: tuple[Series, ...] = (
    Series("plain", "normal deviations, a machine that stands still", _still, _normal(OWN), _normal(WINDOW)),
    Series("linear drift", "up to 1 % a block, common to the sides", _linear, _normal(OWN), _normal(WINDOW)),
    Series("slow sine", "±8 %, period 30 blocks, common to the sides", _sine, _normal(OWN), _normal(WINDOW)),
    Series(
        "autocorrelated",
        "machine 5 % with 0.7 from block to block, windows 0.7 from one to the next",
        _wandering,
        _normal(OWN),
        _correlated_windows,
    ),
    Series("two states, 1:1", "half of the trials 4 % slower", _still, _two_states(0.5), _normal(WINDOW / 4)),
    Series("two states, 1:4", "one trial in five 4 % slower", _still, _two_states(0.2), _normal(WINDOW / 4)),
    Series("spikes", "one window in twenty 20 % to many times longer", _still, _normal(OWN), _spiky_windows),
    Series(
        "as seen",
        "machine 5 % with 0.7 from block to block, trials and windows with heavy tails, windows of 7 to 15 %",
        _wandering,
        _heavy(OWN),
        _seen_windows,
    ),
    Series("uneven sine", "the slow sine, felt 1.25 times by B", _sine, _normal(OWN), _normal(WINDOW), felt_by_b=1.25),
)
