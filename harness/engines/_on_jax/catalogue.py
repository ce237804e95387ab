"""What names are alike of engines whose arrays are JAX's, for the parent: importing this imports no JAX."""

from collections.abc import Collection, Iterable, Mapping

from harness.engines._on_jax import REFUSED_SETTINGS
from harness.spec.catalogue import Catalogue, DeviceTraits, StrategyTraits
from harness.trial.same_work.catalogue import WITHOUT_BARRIER, catalogue_of


def on_jax(
    device: str, strategies: Iterable[StrategyTraits], ways: Mapping[str, str], cards: Collection[DeviceTraits] = ()
) -> Catalogue:
    """As `catalogue_of`, of `ways` to train by their summaries; XLA chooses how to reduce, and orders what does not
    depend on each other as it likes, so that no way has a barrier."""
    instruments = dict.fromkeys(ways, WITHOUT_BARRIER)
    chosen = {"auto": "XLA's choice"}
    return catalogue_of(device, strategies, chosen, ways, instruments, cards=cards, refuses=REFUSED_SETTINGS)
