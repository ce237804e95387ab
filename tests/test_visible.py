"""What could be a secret is not shown, and what is none is shown whole."""

import json

import pytest

from harness.spec.work import OwnStepCell
from harness.visible import (
    json_text,
    names_secret,
    no_command,
    without_secrets,
    words_without_secrets,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("env.HF_TOKEN=hush hush", "env.HF_TOKEN=(set)"),
        ("--b=env.my_api_key=hush,hush", "--b=env.my_api_key=(set)"),
        ("train.py --api-key hush --epochs 3", "train.py --api-key (set) --epochs 3"),
        ("train.py --api-key='hush hush' --epochs 3", "train.py --api-key=(set) --epochs 3"),
        ('train.py --password "hush hush"', "train.py --password (set)"),
        ("--step=train.py --auth hush", "--step=train.py --auth (set)"),
        ("train.py --authorization Bearer:hush --passphrase hush", "train.py --authorization (set) --passphrase (set)"),
        ("train.py --password 1234", "train.py --password (set)"),
        ("train.py --api-key=ab'c d'\\ e --epochs 3", "train.py --api-key=(set) --epochs 3"),
        ("--export=HF_TOKEN='hush hush'", "--export=HF_TOKEN=(set)"),
        ("--export=ALL,HF_TOKEN=hush,OTHER=1 --wait=0", "--export=ALL,HF_TOKEN=(set),OTHER=1 --wait=0"),
    ],
)
def test_a_secret_is_not_shown(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "sweep",
        "tokens=40",
        "--quantity=tokens=40",
        "env.TOKENIZERS_PARALLELISM=false",
        "train.py --max-tokens 40 --author me --auth --monkey x",
        "train.py --keyboard x TF_XLA_FLAGS=--tf_xla_auto_jit=2",
        "train.py --key-dim 64 --num-keys=1000",
        "own:step",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_a_secret_that_is_a_word_of_its_own_is_not_shown_either() -> None:
    words = ["pytest", "--api-token", "hush", "-x", "--auth", "--max-tokens", "40", "--key=hush", "env.HF_TOKEN=hush"]
    shown = [
        "pytest",
        "--api-token",
        "(set)",
        "-x",
        "--auth",
        "--max-tokens",
        "40",
        "--key=(set)",
        "env.HF_TOKEN=(set)",
    ]
    assert words_without_secrets(words) == shown
    assert words_without_secrets(shown) == shown


def test_a_name_tells_a_secret_however_it_is_written() -> None:
    assert all(map(names_secret, ("HF_TOKEN", "--api-key", "AWS_SECRET_ACCESS_KEY", "password", "AUTHOR_TOKEN")))
    harmless = (
        "keyboard",
        "monkey",
        "MAX_TOKENS",
        "author",
        "--eos-token-id",
        "--pad-token",
        "--num-key-value-heads",
        "--sort-key",
    )
    assert not any(map(names_secret, harmless))


def test_a_cell_is_called_without_a_secret_and_is_the_cell_that_it_was() -> None:
    own, other = (OwnStepCell(step=f"train.py --api-key {key} --epochs 3") for key in ("hush", "still"))
    assert own.label == "train.py --api-key (set) --epochs 3 b1"
    assert "hush" not in own.full_name
    assert own.cell_id != other.cell_id


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", ": :error::x"),
        ("a\n \t::add-mask::x\nb", "a\n \t: :add-mask::x\nb"),
        ("a ##[group]x##[endgroup]", "a ## [group]x## [endgroup]"),
        ("tf::Status at tests/x.py::test: # [1] ## b", "tf::Status at tests/x.py::test: # [1] ## b"),
    ],
)
def test_nothing_is_a_command_to_github(text: str, shown: str) -> None:
    assert no_command(text) == shown
    assert no_command(shown) == shown


def test_json_without_commands_to_github_loses_nothing() -> None:
    value = {"##[group]": ["::error::\n##[x]", "#", "##"]}
    assert json.loads(json_text(value)) == value
    assert no_command(json_text(value)) == json_text(value)
