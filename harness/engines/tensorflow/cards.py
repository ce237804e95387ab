"""Which of its host's cards a process computes on, by ids that mean the same in every process."""

from collections.abc import Sequence

from harness.environment.cuda import card_at


def cards_in_use(device_names: Sequence[str]) -> list[str]:
    """Ids of the GPUs behind logical devices of these names (`gpu.N.id`); none where one of them is not known.

    TensorFlow counts GPUs as CUDA does. Its runtime must have started.
    """
    import tensorflow as tf

    if not any("GPU" in name for name in device_names):
        return []
    seen = [card_at(int(gpu.name.rpartition(":")[2])) for gpu in tf.config.get_visible_devices("GPU")]
    return [card for card in seen if card is not None] if None not in seen else []
