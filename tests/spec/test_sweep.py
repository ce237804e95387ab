"""A sweep from raw keys: defaults, validation, and errors that a person can act on."""

import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from harness.errors import UsageError
from harness.spec import OwnStepCell, Sweep, expand, load_sweep, sweep_from
from harness.spec.axes import OF_OWN_STEP, TABLE
from harness.spec.faults import Faults, faults_from
from harness.spec.reading import PATTERNS
from harness.spec.settings import Settings
from harness.spec.sweep import ASKED, AXES, OTHER_WORKS
from harness.spec.values import LARGEST
from harness.spec.work import CELL_KINDS
from tests.spec.catalogues import CATALOGUE

NAN, INFINITY = float("nan"), float("inf")
HUNDRED, MANY = list(range(1, 101)), list(range(4, 4008, 4))


def error_of(**values: Any) -> str:
    """The text of the UsageError that `values` give; it is one line."""
    with pytest.raises(UsageError) as caught:
        sweep_from(values)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_one_value_is_an_axis_of_one() -> None:
    assert sweep_from({"replicas": 4, "strategy": "mirrored", "xla": True}) == Sweep(
        replicas=[4], strategy=["mirrored"], xla=[True]
    )


def test_a_whole_number_of_seconds_is_a_number_of_seconds() -> None:
    assert sweep_from({"timeout": 5, "window": 1}).timeout == 5.0


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("replicas", 0, "greater than or equal to 1"),
        ("replicas", -2, "greater than or equal to 1"),
        ("replicas", 1.5, "expected a whole number"),
        ("replicas", "2", "expected a whole number"),
        ("replicas", True, "expected a whole number"),
        ("replicas", 10**30, "less than or equal to 4096"),
        ("batch_size", [8, 0], "greater than or equal to 1"),
        ("batch_size", [[8]], "expected a whole number"),
        ("batch_size", {"a": 1}, "expected a whole number"),
        ("batch_size", LARGEST + 1, f"less than or equal to {LARGEST}"),
        ("strategy", 3, "expected a text"),
        ("strategy", [None], "expected a text"),
        ("xla", "maybe", "expected true or false"),
        ("xla", 1.5, "expected true or false"),
        ("trials", 0, "greater than or equal to 1"),
        ("trials", [5], "expected a whole number"),
        ("trials", 10**9, "less than or equal to 1000"),
        ("seed", -1, "greater than or equal to 0"),
        ("seed", 2**40, f"less than or equal to {LARGEST}"),
        ("timeout", 0, "greater than 0"),
        ("timeout", -1.0, "greater than 0"),
        ("timeout", NAN, "finite number"),
        ("timeout", INFINITY, "finite number"),
        ("timeout", 1e300, "less than or equal to 604800"),
        ("timeout", True, "expected a number"),
        ("timeout", "5", "expected a number"),
        ("window", NAN, "finite number"),
        ("window", 1e300, "less than or equal to 604800"),
        ("window", -0.1, "greater than 0"),
        ("windows", 4, "greater than or equal to 5"),
        ("windows", 101, "less than or equal to 100"),
        ("max_warmup", -1, "greater than or equal to 0"),
        ("half_width", 1.0, "less than 1"),
        ("half_width", NAN, "less than 1"),
        ("name", "", "letters, digits, "),
        ("name", "../escape", "letters, digits, "),
        ("name", "a b", "letters, digits, "),
        ("name", "x" * 65, "letters, digits, "),
        ("data_dir", 3, "expected a text"),
    ],
)
def test_a_bad_value_is_answered_with_its_key_what_was_given_and_what_is_expected(
    key: str, given: Any, expected: str
) -> None:
    message = error_of(**{key: given})
    assert message.startswith(f"spec: {key}: given ")
    assert expected in message


@pytest.mark.parametrize(("keys", "read"), [(Sweep, sweep_from), (Faults, faults_from)])
@pytest.mark.parametrize("given", [1.5, "two", [[1]], [], {"a": 1}, True, datetime.date(2026, 1, 1)])
def test_no_key_of_a_spec_is_answered_in_the_words_of_the_library_that_reads_it(
    keys: type[BaseModel], read: Callable[[dict[str, Any]], object], given: Any
) -> None:
    answers = []
    for key in keys.model_fields:
        try:
            read({key: given})
        except UsageError as error:
            answers.append(str(error))
    assert len(answers) > 5
    assert not [answer for answer in answers if re.search(r"valid|[Ii]nput|\n", answer)]


def test_what_the_pattern_of_a_key_refuses_is_told_in_words() -> None:
    keys = Sweep.model_json_schema()["properties"]
    of_patterns = {key for key, schema in keys.items() if "pattern" in {**schema, **schema.get("items", {})}}
    assert of_patterns == PATTERNS.keys()
    for key in of_patterns:
        assert error_of(**{key: "/"}) == f"spec: {key}: given '/', expected {PATTERNS[key]}"


@pytest.mark.parametrize(
    ("key", "given", "nearest"),
    [
        ("batch_scope", "per-replica", "per_replica"),
        ("precision", "bfloat16", "mixed_bfloat16"),
    ],
)
def test_a_bad_choice_is_answered_with_the_nearest_one(key: str, given: str, nearest: str) -> None:
    message = error_of(**{key: given})
    assert f"{key}: given '{given}'" in message
    assert message.endswith(f"did you mean '{nearest}'?")


def test_an_unknown_key_is_answered_with_the_nearest_one() -> None:
    assert error_of(replica=[2]) == "spec: unknown key 'replica'; did you mean 'replicas'?"
    assert error_of(zzz=1) == "spec: unknown key 'zzz'"


@pytest.mark.parametrize("key", sorted(AXES))
def test_a_value_that_is_listed_twice_is_refused(key: str) -> None:
    first = getattr(Sweep(), key) or [
        {"mesh": "batch:1", "collective": "broadcast", "size": 4, "cut": "source"}.get(key, 1)
    ]
    assert f"{key}: " in error_of(**{key: [first[0], first[0]]})
    assert "a value is listed twice" in error_of(**{key: [first[0], first[0]]})


@pytest.mark.parametrize("key", sorted(key for key in AXES if ASKED[key].values))
def test_an_axis_needs_a_value(key: str) -> None:
    assert error_of(**{key: []}) == f"spec: {key}: expected at least one value, given an empty list"


def test_the_most_trials_matter_only_where_a_second_stage_may_be_planned() -> None:
    assert sweep_from({"trials": 30}).trials == 30
    message = error_of(time=60.0, half_width=0.01)
    assert message == "spec: time: a sweep with half_width is as long as its spread asks for; leave one out"
    message = error_of(trials=30, max_trials=20, half_width=0.01)
    assert message == "spec: max_trials: given 20, expected at least trials (30)"


@given(
    st.dictionaries(
        st.sampled_from(sorted(Sweep.model_fields)),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
            max_leaves=5,
        ),
        max_size=3,
    )
)
def test_whatever_is_given_the_answer_is_a_sweep_that_can_be_stored_or_one_line(values: dict[str, Any]) -> None:
    try:
        sweep = sweep_from(values)
    except UsageError as error:
        said = str(error)
    else:
        said = ""
        assert Sweep.model_validate_json(sweep.model_dump_json()) == sweep
    assert len(said.splitlines()) <= 1


def test_a_spec_is_read_from_toml(tmp_path: Path) -> None:
    spec = tmp_path / "ünïcode and space.toml"
    spec.write_text('name = "x"\nreplicas = [1, 3]\n', encoding="utf-8")
    assert load_sweep(spec) == {"name": "x", "replicas": [1, 3]}


def test_a_spec_that_is_not_there_a_folder_not_text_or_not_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "broken.toml").write_text("replicas = [1,\n")
    tables = ["[a]", "x = 1", "[b]", "x = 1", "seed = 1", "seed = 2", "y = 1"]
    several = ['text = """', *["x = 1"] * 20_000, '"""', *tables]
    (tmp_path / "tables.toml").write_text("\n".join(several))
    (tmp_path / "twice.toml").write_text("replicas = [\n 1,\n]\nseed = 1\nreplicas = 2")
    for name, expected in {
        "none.toml": "no file at",
        ".": "Is a directory",
        "binary.toml": "cannot read",
        "broken.toml": "is not valid TOML",
        "tables.toml": "tables.toml': seed: is given twice; keep one of them$",
        "twice.toml": "twice.toml': replicas: is given twice; keep one of them$",
    }.items():
        with pytest.raises(UsageError, match=expected) as caught:
            load_sweep(tmp_path / name)
        assert str(caught.value).startswith("SPEC: ")
        assert str(tmp_path) in str(caught.value)


def test_a_window_that_is_longer_than_a_silent_trial_may_be_is_refused() -> None:
    assert error_of(window=10, timeout=10) == (
        "spec: window: given 10 s, expected less than timeout (10 s), after which a trial without a sign of life is "
        "ended"
    )


@pytest.mark.parametrize("spec", sorted(Path("benchmarks").glob("*.toml")), ids=lambda path: path.stem)
def test_every_spec_that_comes_with_the_project_is_valid(spec: Path) -> None:
    of_faults = spec.stem == "faults"  # the one spec of another verb
    (faults_from if of_faults else sweep_from)(load_sweep(spec), str(spec))


def test_more_combinations_than_anybody_measures_are_refused_before_any_is_made() -> None:
    values = list(range(1, 2001))
    assert error_of(batch_size=values, replicas=values, prefetch=values, strategy="mirrored") == (
        "spec: replicas, batch_size, prefetch: given 8,000,000,000 combinations (2,000 × 2,000 × 2,000), "
        "expected at most 100,000"
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"strategy": "mirrored", "replicas": 1, "batch_size": HUNDRED, "num_packs": [0, 1], "bytes_per_pack": MANY},
            "batch_size, num_packs and bytes_per_pack: given 100,300 combinations (100 × 1,003)",
        ),
        ({"work": "collective", "replicas": HUNDRED, "size": MANY}, "replicas, size: given 100,100 combinations"),
        ({"step": "a.b:c", "intra_op_threads": list(range(100_001))}, "intra_op_threads: given 100,001 combinations,"),
    ],
)
def test_the_bound_is_on_the_product_of_all_lists_that_the_work_has(values: dict[str, Any], said: str) -> None:
    assert said in error_of(**values)


@pytest.mark.parametrize("key", sorted(OF_OWN_STEP))
def test_a_step_of_ones_own_has_several_values_of_what_its_cell_says_alone(key: str) -> None:
    two = {key: list(TABLE[key].tried)}
    if key in OwnStepCell.model_fields:
        assert len(expand(sweep_from({"step": "a.b:c", **two}), CATALOGUE).cells) == 2
        return
    assert error_of(step="a.b:c", **two) == (
        f"spec: {key}: given {two[key]}, expected one value: a step of your own is one cell"
    )
    assert sweep_from({"step": "a.b:c", key: two[key][0]}).asked(key) == two[key][:1]


def test_as_many_combinations_as_the_bound_are_a_sweep() -> None:
    values = {"strategy": "mirrored", "replicas": HUNDRED, "batch_size": MANY[:-1]}
    assert sweep_from(values).asked("replicas") == HUNDRED


def test_more_trials_than_a_plan_holds_are_refused() -> None:
    many = list(range(1, 1002))
    assert error_of(strategy="none", replicas=1, batch_size=many, trials=1000) == (
        "spec: batch_size, trials: given 1,001,000 trials (1,001 × 1,000), expected at most 1,000,000"
    )


@pytest.mark.parametrize("values", [{"trials": 1000}, {"trials": 2, "half_width": 0.01, "max_trials": 1000}])
def test_more_trials_and_windows_than_a_run_is_read_of_are_refused(values: dict[str, Any]) -> None:
    many = {"strategy": "none", "replicas": 1, "batch_size": list(range(1, 401)), **values}
    assert error_of(**many, windows=100) == (
        "spec: trials, windows: 400,000 trials of 102 windows have records of about 2.5 GiB, "
        "expected at most 2 GiB, of which a run can be read"
    )
    assert sweep_from({**many, "windows": 60}).windows == 60


def test_keys_that_a_caller_has_no_use_for_are_validated_and_left_out() -> None:
    assert sweep_from({"trials": 7, "seed": 3}, unused=["trials"]) == Sweep(seed=3)
    with pytest.raises(UsageError, match="spec: trials: given 'x', expected a whole number"):
        sweep_from({"trials": "x"}, unused=["trials"])


@pytest.mark.parametrize("key", ["data_dir", "engine", "model", "tpu", "slurm_args"])
def test_a_text_that_no_path_and_no_argument_can_be_is_refused(key: str) -> None:
    assert "expected a text without NUL characters" in error_of(**{key: "a\0b"})


def test_a_spec_may_begin_with_the_mark_that_editors_put_before_utf_8(tmp_path: Path) -> None:
    spec = tmp_path / "marked.toml"
    spec.write_text('name = "größe"\n', encoding="utf-8-sig")
    assert load_sweep(spec) == {"name": "größe"}


def test_each_kind_of_work_that_a_spec_can_ask_for_is_one_entry_and_has_cells_of_its_own() -> None:
    asked = get_args(Settings.model_fields["work"].annotation)
    assert {*asked} == {"training", *OTHER_WORKS}
    assert {*asked} <= CELL_KINDS.keys()
