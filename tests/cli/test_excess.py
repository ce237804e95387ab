"""Specs, records and values with more of something than anybody writes: depth, dots, digits, characters."""

from pathlib import Path

import pytest

from tests.cli.conftest import Harness


@pytest.mark.parametrize(
    ("toml", "key"),
    [
        ("trials = 2\nreplicas = " + "[" * 5000 + "]" * 5000, "replicas"),
        ("replicas = [1]\nmodel = [\n" + "[" * 100_000, "model"),
        ("replicas" + ".a" * 48 + " = 1", "replicas"),
        ("x = " + "{a = " * 5000, "x"),
    ],
)
def test_a_spec_that_is_nested_too_deeply_is_one_line_with_file_and_key(
    harness: Harness, tmp_path: Path, toml: str, key: str
) -> None:
    (tmp_path / "deep.toml").write_text(toml)
    for verb in ("sweep", "faults"):
        code, out, error = harness(verb, "deep.toml", "--dry-run")
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert "deep.toml" in error
        assert key in error
        assert len(error) < 500


@pytest.mark.parametrize(
    "toml",
    [
        "replicas" + ".a" * 300_000 + " = 1",
        "[replicas" + ".a" * 300_000 + "]",
        "strategy = {replicas" + ' . \'a\'."a\\"=."' * 49 + " = 1}",
    ],
)
def test_a_spec_with_a_key_of_many_parts_is_refused_before_it_is_parsed(
    harness: Harness, tmp_path: Path, toml: str
) -> None:
    (tmp_path / "long.toml").write_text("trials = 2\n" + toml)
    code, out, error = harness("sweep", "long.toml", "--dry-run")
    assert (code, out) == (2, "")
    assert error == "harness: SPEC: 'long.toml': line 2: a key has more than 48 dots\n"


@pytest.mark.parametrize("value", ["0.1," * 1000, "'" + "." * 1000 + "'", "'" + "a" * 500_000 + "'"])
def test_values_and_long_words_are_no_keys_of_many_parts(harness: Harness, tmp_path: Path, value: str) -> None:
    (tmp_path / "long.toml").write_text(f"replicas = [{value}]")
    assert "dots" not in harness("sweep", "long.toml", "--dry-run")[2]


@pytest.mark.parametrize("name", ["run.json", "trials.jsonl"])
def test_a_record_that_is_nested_too_deeply_is_one_line_with_its_file(
    harness: Harness, stored: Path, name: str
) -> None:
    (stored / name).write_text('{"run_id": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    code, _, error = harness("show", str(stored))
    assert (code, error.count("\n")) == (4, 1)
    assert name in error


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("toml", "key"),
    [
        (f"replicas = [1]\ntrials = {DIGITS}", "trials"),
        (f"model = 'mlp'\nreplicas = [\n  1,\n  {'9_9' * 2500},\n]\ntrials = 3", "replicas"),
        (f"timeout = -{DIGITS}", "timeout"),
        *((f"{key} = 0x{'f' * 5000}", key) for key in ("seed", "timeout", "model", "strategy")),
    ],
)
def test_a_number_of_thousands_of_digits_in_a_spec_is_one_line_with_file_and_key(
    harness: Harness, tmp_path: Path, toml: str, key: str
) -> None:
    (tmp_path / "long.toml").write_text(toml)
    for arguments in (("sweep", "--dry-run"), ("faults", "--dry-run"), ("ab", "--b", "replicas=2")):
        code, out, error = harness(arguments[0], "long.toml", *arguments[1:])
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert key in error
        assert len(error) < 500
    assert [path.name for path in tmp_path.iterdir()] == ["long.toml"]


@pytest.mark.parametrize("name", ["run.json", "trials.jsonl"])
def test_a_record_with_a_number_of_thousands_of_digits_is_one_line_with_its_file_and_is_no_torn_end(
    harness: Harness, stored: Path, name: str
) -> None:
    before = '{"run_id": ' + DIGITS + "}\n"
    (stored / name).write_text(before)
    for arguments in (("show", str(stored)), ("export", str(stored)), ("sweep", "--resume", str(stored))):
        code, out, error = harness(*arguments)
        assert (code, out, error.count("\n")) == (4, "", 1)
        assert name in error
        assert len(error) < 500
    assert (stored / name).read_text() == before


def test_a_value_of_thousands_of_characters_is_not_echoed_whole(harness: Harness) -> None:
    for flag in ("--name", "--model", "--strategy", "--replicas", "--mesh", "--resume"):
        code, _, error = harness("sweep", flag, "a" * 5000)
        assert (code, error.count("\n")) == (2, 1)
        assert len(error) < 800
