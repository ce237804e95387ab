"""Text and tables that need no network, and what a model of each gets of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import DataInfo, load_source
from harness.engines.tensorflow.data import text as module
from harness.engines.tensorflow.data.pipeline import gate_batches, pipeline
from harness.engines.tensorflow.workloads import Vocabulary
from harness.errors import HarnessError, UsageError
from harness.run.request import asked_matrix
from harness.spec.sweep import Sweep

CLASSES, NEXT = Vocabulary(256), Vocabulary(256, next_token=True)
WORDS, NEXT_WORD = Vocabulary(30_522), Vocabulary(20_000, next_token=True)


def first(name: str, shape: tuple[int, ...], classes: int, vocabulary: Vocabulary | None = None) -> Any:
    """The first gate batch of eight."""
    return gate_batches(load_source(name), Path(), shape, classes, 8, 1, vocabulary)[0]


def test_text_is_pythons_own_source_and_its_classes_are_packages_in_turn(tf: Any) -> None:  # noqa: ARG001
    x, y = first("text", (1024,), 10, CLASSES)
    assert (x.shape, x.dtype, list(y)) == ((8, 1024), np.int32, list(range(8)))
    assert b"import" in bytes(x[0].astype(np.uint8))


def test_words_are_numbered_by_how_frequent_they_are_and_each_of_20_000_numbers_occurs(tf: Any) -> None:  # noqa: ARG001
    x, y = first("tokens", (1024,), 10, WORDS)
    assert (x.shape, x.dtype, list(y)) == ((8, 1024), np.int32, list(range(8)))
    pieces, labels = module._in_words()
    counts = np.bincount(pieces.ravel())
    assert (pieces.shape, pieces.dtype, np.count_nonzero(counts)) == ((4000, 1025), np.uint16, 20_000)
    assert counts[1:11].mean() > counts[11:101].mean() > counts[101:1001].mean() > counts[1001:].mean()
    assert counts[0] < 0.02 * pieces.size
    np.testing.assert_array_equal(np.bincount(labels), [400] * 10)


def test_a_package_is_split_into_words_that_are_its_text_again_and_a_number_is_one_word() -> None:
    text = module._text_of("tokens", "asyncio", module.WORDS_OF)
    words = module.SPLIT.findall(text)
    assert b"".join(words) == text
    numbers = module._in_words()[0][0]
    known: dict[int, set[bytes]] = {}
    for word, number in zip(words, numbers.tolist(), strict=False):
        known.setdefault(number, set()).add(word)
    assert all(len(of) == 1 for number, of in known.items() if number)
    assert len(known) > 100


def test_tests_which_not_every_python_has_are_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sysconfig, "get_path", lambda _: str(tmp_path))
    for folder in ("", "test", "test/more"):
        (tmp_path / "xml" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "xml" / folder / "a.py").write_bytes((folder or "x").encode() * module.OF_PACKAGE)
    assert module._text_of("tokens", "xml", module.WORDS_OF) == b"x" * module.OF_PACKAGE


@pytest.mark.parametrize(("name", "vocabulary"), [("text", NEXT), ("tokens", NEXT_WORD)])
def test_where_the_model_tells_the_next_token_that_is_the_target(tf: Any, name: str, vocabulary: Vocabulary) -> None:  # noqa: ARG001
    x, y = first(name, (40,), vocabulary.size, vocabulary)
    assert x.shape == y.shape == (8, 40)
    np.testing.assert_array_equal(x[:, 1:], y[:, :-1])


@pytest.mark.parametrize(
    ("name", "vocabulary"), [("text", CLASSES), ("text", NEXT), ("tokens", WORDS), ("tokens", NEXT_WORD)]
)
def test_what_is_timed_is_text_of_the_same_kind_as_what_the_gate_knows(
    tf: Any,  # noqa: ARG001
    name: str,
    vocabulary: Vocabulary,
) -> None:
    gate = first(name, (16,), 256, vocabulary)
    timed = next(iter(pipeline(load_source(name), Path(), (16,), 256, 8, seed=1, vocabulary=vocabulary)))
    assert [(part.shape, part.dtype) for part in gate] == [(part.shape, part.numpy().dtype) for part in timed]


@pytest.mark.parametrize(
    ("name", "shape", "vocabulary", "says"),
    [
        (
            "text",
            (1025,),
            NEXT,
            r"^model: takes input of shape \(1025,\), expected \(tokens,\) of at most 1024 for 'text'$",
        ),
        (
            "text",
            (16,),
            Vocabulary(255),
            "^model: its vocabulary has 255 tokens, expected those of 'text', 256 or more$",
        ),
        ("tokens", (16,), CLASSES, "^model: its vocabulary has 256 tokens, expected those of 'tokens', 20000 or more$"),
    ],
)
def test_a_model_that_cannot_take_the_text_is_refused(
    name: str, shape: tuple[int, ...], vocabulary: Vocabulary, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        first(name, shape, 10, vocabulary)


def test_a_named_model_that_does_not_fit_the_text_is_refused_before_anything_runs_and_one_that_does_is_not() -> None:
    sweep = Sweep(strategy=["none"], replicas=[1], model=["gpt(tokens=2048)", "lstm(vocabulary=100)", "gpt"])
    matrix = asked_matrix(sweep)
    assert {cell.subject for cell in matrix.cells} == {"gpt"}
    assert [f"{item.combination}: {item.reason}" for item in matrix.left_out] == [
        "gpt(tokens=2048) on text: takes input of shape (2048,), expected (tokens,) of at most 1024 for 'text'",
        "lstm(vocabulary=100) on text: its vocabulary has 100 tokens, expected those of 'text', 256 or more",
    ]
    with pytest.raises(UsageError, match=r"^no combination is left to run \(gpt\(tokens=2048\) on text: takes input"):
        asked_matrix(sweep.model_copy(update={"model": ["gpt(tokens=2048)"]}))
    asked_matrix(sweep.model_copy(update={"model": ["gpt(tokens=2048)"], "data": ["synthetic"]}))


@pytest.mark.parametrize("name", ["text", "tokens"])
def test_a_python_without_its_sources_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(module.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(
        HarnessError, match=rf"^data: '{name}' is source code of Python's standard library, and .* has 0 b"
    ):
        module._text_of(name, "asyncio", module.OF_PACKAGE)


@pytest.mark.parametrize("name", ["breast_cancer", "iris", "wine"])
def test_a_table_is_scikit_learns_with_columns_of_one_scale_and_classes_mixed(tf: Any, name: str) -> None:  # noqa: ARG001
    import sklearn.datasets

    theirs = getattr(sklearn.datasets, f"load_{name}")()
    source = load_source(name)
    info = source.info(Path())
    assert info == DataInfo((theirs.data.shape[1],), len(theirs.target_names), len(theirs.data))
    [(x, y)] = gate_batches(source, Path(), info.shape, info.classes, len(theirs.data), 1)
    np.testing.assert_allclose([x.mean(axis=0), x.std(axis=0)], [[0] * x.shape[1], [1] * x.shape[1]], atol=1e-5)
    np.testing.assert_array_equal(np.bincount(y), np.bincount(theirs.target))
    assert len(set(y[:20])) == info.classes


@pytest.mark.parametrize("name", ["diabetes", "linnerud"])
def test_a_table_of_numbers_is_scikit_learns_with_targets_of_one_scale_too(tf: Any, name: str) -> None:  # noqa: ARG001
    import sklearn.datasets

    theirs = getattr(sklearn.datasets, f"load_{name}")()
    targets = theirs.target.reshape(len(theirs.data), -1)
    info = load_source(name).info(Path())
    assert info == DataInfo((theirs.data.shape[1],), 0, len(theirs.data), numbers=targets.shape[1])
    [(x, y)] = gate_batches(load_source(name), Path(), info.shape, info.numbers, len(theirs.data), 1)
    both = np.hstack([x, y])
    assert both.dtype == np.float32
    np.testing.assert_allclose(both.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(both.std(axis=0), 1, atol=1e-5)
    correlated = np.corrcoef(np.hstack([theirs.data, targets]), rowvar=False)
    np.testing.assert_allclose(np.corrcoef(both, rowvar=False), correlated, atol=1e-5)


def test_a_model_of_another_number_of_outputs_than_a_table_has_is_refused(tf: Any) -> None:  # noqa: ARG001
    with pytest.raises(
        UsageError,
        match=r"^data: 'linnerud' gives targets of 3 numbers and the model has 1 output, expected as many$",
    ):
        gate_batches(load_source("linnerud"), Path(), (3,), 1, 8, 1)


def test_a_batch_larger_than_a_table_has_no_row_twice(tf: Any) -> None:  # noqa: ARG001
    [(x, _)] = gate_batches(load_source("wine"), Path(), (13,), 3, 400, 1)
    assert len(np.unique(x, axis=0)) == 400
