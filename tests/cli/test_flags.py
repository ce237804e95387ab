"""Flags of all verbs: of one that is given again a list has all values, and anything else takes one, and not none."""

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

from harness import cli
from harness.cli._flags import keys_given
from harness.spec.faults import LISTS, Faults
from harness.spec.sweep import AXES, Sweep

Harness = Callable[..., tuple[int, str, str]]
ONE, OTHER = "7", "8"
"""Text, a number, a count of blocks and a path alike."""
CLUSTER = "--strategy multi_worker_mirrored --workers 2"
DTENSOR = "--strategy dtensor --replicas 1,2"


def flags_of_verbs() -> Iterator[tuple[str, Any]]:
    """Every verb with each of its flags but --help."""
    for verb, command in cli.command_line().commands.items():
        for flag in command.params:
            if flag.param_type_name == "option" and flag.name != "help":
                yield verb, flag


VERBS = sorted({verb for verb, _ in flags_of_verbs()})
ONCE = [pytest.param(verb, flag, id=f"{verb} {flag.opts[0]}") for verb, flag in flags_of_verbs() if not flag.multiple]


HEARD: list[dict[str, Any]] = []


@functools.cache
def of_deaf_verbs(*verb: str) -> Any:
    """The command line of verbs that only write down in HEARD what they are given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "_verb", lambda module: told(module, HEARD))
        return typer.main.get_command(cli.build(verb))


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What verbs are called with, which do nothing."""
    HEARD.clear()
    monkeypatch.setattr(cli, "command_line", of_deaf_verbs)
    return HEARD


def words_needed(verb: str, *but: Any) -> list[str]:
    """What `verb` cannot be called without, the flags in `but` left out."""
    command = cli.command_line(verb).commands[verb]
    needed = [one for one in command.params if one.required and one.name not in {flag.name for flag in but}]
    return [word for one in needed for word in ([*one.opts, ONE] if one.param_type_name == "option" else [ONE])]


@pytest.mark.parametrize(("verb", "flag"), ONCE)
def test_a_flag_of_one_value_is_refused_with_two_that_differ(
    harness: Harness, called: list[dict[str, Any]], verb: str, flag: Any
) -> None:
    if flag.is_flag and not flag.secondary_opts:
        return  # it has one value
    twice = [flag.opts[0], *flag.secondary_opts] if flag.is_flag else [flag.opts[0], ONE, f"{flag.opts[0]}={OTHER}"]
    code, out, error = harness(verb, *words_needed(verb, flag), *twice)
    assert (code, out, called, error.count("\n")) == (2, "", [], 1)
    assert error.startswith(f"harness: {flag.opts[0]}: given ")
    assert all(value in error for value in (flag.secondary_opts or [f"'{ONE}'", f"'{OTHER}'"]))


@pytest.mark.parametrize("verb", VERBS)
def test_a_flag_with_the_same_value_again_is_as_if_given_once_and_a_list_has_both(
    harness: Harness, called: list[dict[str, Any]], verb: str
) -> None:
    flags = [flag for of, flag in flags_of_verbs() if of == verb]
    again = [word for flag in flags for word in ([flag.opts[0]] if flag.is_flag else [flag.opts[0], ONE])]
    assert harness(verb, *words_needed(verb, *flags), *again, *again) == (0, "", "")
    [given] = called
    assert {flag.name for flag in flags if isinstance(given.get(flag.name), list)} == {
        flag.name for flag in flags if flag.multiple
    }
    assert all(given[flag.name] == [ONE, ONE] for flag in flags if flag.multiple)


real_verb = cli._verb


def told(module: Any, called: list[dict[str, Any]]) -> Callable[..., int]:
    """The verb of `module` with its flags, which only writes down what it is given."""
    verb = real_verb(module)

    def listening(**given: Any) -> int:
        called.append(given)
        return 0

    listening.__signature__ = verb.__signature__  # type: ignore[attr-defined]
    listening.__annotations__ = verb.__annotations__
    return listening


TAKES_TEXT = [
    case
    for case in ONCE
    if not case.values[1].is_flag and case.values[1].name not in {*Sweep.model_fields, *Faults.model_fields}
]


@pytest.mark.parametrize(("verb", "flag"), TAKES_TEXT)
def test_a_flag_that_is_no_key_is_refused_with_an_empty_text(
    harness: Harness, called: list[dict[str, Any]], verb: str, flag: Any
) -> None:
    code, out, error = harness(verb, *words_needed(verb, flag), flag.opts[0], "")
    assert (code, out, called, error.count("\n")) == (2, "", [], 1)
    assert flag.opts[0] in error


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("show", ""), "RUN"),
        (("sweep", ""), "SPEC.toml"),
        (("compare", "a", ""), "RUN_B"),
        (("import", ""), "FILE.csv"),
    ],
)
def test_a_word_that_is_empty_is_refused_as_a_flag_is(
    harness: Harness, called: list[dict[str, Any]], arguments: tuple[str, ...], names: str
) -> None:
    assert harness(*arguments) == (2, "", f"harness: {names}: given '', expected a name or a path\n")
    assert called == []


def test_the_flags_that_take_a_list_are_the_axes_and_what_says_so_itself() -> None:
    several = {(verb, flag.name) for verb, flag in flags_of_verbs() if flag.multiple}
    of_axes = {(verb, key) for verb in ("sweep", "ab", "explain", "validate") for key in AXES}
    of_faults = {("faults", key) for key in LISTS}
    assert several - of_axes == of_faults | {("ab", "a"), ("ab", "b"), ("history", "cell"), ("report", "others")}
    assert {("sweep", key) for key in AXES} <= several


@pytest.mark.parametrize(
    ("several", "one"),
    [
        ("--strategy none --strategy mirrored", "--strategy none,mirrored"),
        ("--replicas 1,2 --replicas 3 --strategy mirrored", "--replicas 1,2,3 --strategy mirrored"),
        ("--model mlp --model transformer(layers=1,width=8)", "--model mlp,transformer(layers=1,width=8)"),
        (f"{CLUSTER} --network rate=1gbit --network delay=1ms", f"{CLUSTER} --network rate=1gbit;delay=1ms"),
        (f"{DTENSOR} --mesh batch:2 --mesh model:2", f"{DTENSOR} --mesh batch:2;model:2"),
    ],
)
def test_an_axis_that_is_given_again_has_the_values_of_both(harness: Harness, several: str, one: str) -> None:
    planned = [harness("sweep", "--dry-run", "--json", *words.split()) for words in (several, one)]
    assert planned[0][0] == 0, planned[0][2]
    assert planned[0] == planned[1]
    assert len(json.loads(planned[0][1])["cells"]) > 1


@pytest.mark.parametrize(("model", "unknown"), [("keras:ResNet50(side=32)", True), ("transformer(layers=9)", False)])
def test_an_estimate_says_that_it_knows_nothing_of_how_large_a_model_is(
    harness: Harness, model: str, unknown: bool
) -> None:
    code, out, _ = harness("sweep", "--dry-run", "--model", model)
    assert code == 0
    assert ("building and proving models larger than the built-in ones" in out.splitlines()[0]) is unknown


def test_what_a_flag_of_faults_is_given_again_is_joined_too(harness: Harness) -> None:
    common = ("faults", "--dry-run", "--strategy", "mirrored")
    several = harness(*common, "--fault", "kill_worker", "--fault", "sigterm")
    assert several == harness(*common, "--fault", "kill_worker,sigterm")
    assert several[0] == 0


def test_an_axis_with_a_value_twice_is_refused_however_it_is_spelled(harness: Harness) -> None:
    code, _, error = harness("sweep", "--strategy", "mirrored", "--strategy", "mirrored", "--dry-run")
    assert code == 2
    assert "strategy: given ['mirrored', 'mirrored']: a value is listed twice" in error


def test_a_wrong_value_among_several_is_named_as_by_itself(harness: Harness) -> None:
    assert keys_given({"replicas": [""]}) == {"replicas": ""}
    code, _, error = harness("sweep", "--replicas", "1", "--replicas", "two")
    assert (code, error) == (2, "harness: replicas: given 'two', expected a whole number\n")


@pytest.mark.parametrize("text", ["seed=1", "env.TF_X=1"])
def test_a_key_of_a_side_takes_one_value_as_a_flag_does(harness: Harness, text: str) -> None:
    code, _, error = harness("ab", "--a", text, "--a", text, "--a", text.replace("1", "2"))
    key = text.partition("=")[0]
    assert (code, error) == (2, f"harness: --a: {key}: given '1' and '2', expected one value\n")


def test_help_is_shown_beside_flags_that_contradict_each_other(harness: Harness) -> None:
    assert harness("sweep", "--trials", "2", "--trials", "3", "--help")[0] == 0
