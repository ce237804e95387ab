"""Losses by their formulas."""

from typing import Any

import numpy as np

LABELS = np.array([2, 0], np.int32)
LOGITS = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 0.0]], np.float32)


def softmax(logits: Any) -> Any:
    exponentials = np.exp(logits)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def expected_cross_entropy() -> Any:
    return -np.log(softmax(LOGITS)[np.arange(2), LABELS])
