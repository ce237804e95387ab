"""Two sides: what sets them apart, what it is called, and that each really runs in its own environment."""

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.record import RunManifest
from harness.record.manifest import ComparisonRecord
from harness.run.kinds.sides import (
    Side,
    same_commit,
    side_records,
    side_remarks,
    side_zygotes,
    sides_of,
    sides_of_record,
    with_versions,
)
from harness.run.launchers import CannotPlace, launchers
from harness.run.process.zygote import Zygote, ZygoteError
from harness.run.request import request_for
from tests.record.examples import manifest
from tests.run.process.venvs import bare_venv, lend_packages
from tests.run.repositories import Repo
from tests.run.stubs import WITNESS, install, told_by

MIRRORED = {"strategy": ["mirrored"], "replicas": [2]}
OWN = {"model": ["net.models:make_model"]}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders go; and nobody's own git settings."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return folder


def test_sides_whose_rates_are_in_different_units_are_refused_until_they_are_counted_alike() -> None:
    alone = {"strategy": ["none"], "replicas": [1]}
    with pytest.raises(
        UsageError, match=r"^--a, --b: one is counted in tokens/s and another in examples/s, which do not"
    ):
        sides_of(alone, ["model=gpt"], ["model=mlp"])
    sides = sides_of({**alone, "quantity": ["examples"]}, ["model=gpt"], ["model=mlp"])
    assert {side.cell.work.quantity.many for side in sides} == {"examples"}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """The user's package under `src`, of size 1 at the tag `first`, 2 on `main`, and 3 uncommitted; stubs for TF."""
    install(tmp_path, monkeypatch)
    made = Repo.new(tmp_path / "my work")
    made.commit({"src/net/models.py": WITNESS + "SIZE = 1\n", "src/net/__init__.py": "", "sub/x.txt": ""})
    made.git("tag", "first")
    made.commit({"src/net/models.py": WITNESS + "SIZE = 2\n"})
    made.write({"src/net/models.py": WITNESS + "SIZE = 3\n"})
    monkeypatch.chdir(made.root)
    return made


def said(*arguments: Any, **named: Any) -> str:
    with pytest.raises(UsageError) as caught:
        sides_of(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def labels(sides: tuple[Side, Side]) -> tuple[str, str]:
    return sides[0].label, sides[1].label


def sizes(sides: tuple[Side, Side]) -> list[int]:
    """The size that the user's model has on each side."""
    with side_zygotes(sides) as zygotes:
        return [told_by(zygotes[side.name], "net.models:make_model")["size"] for side in sides]


def test_each_side_is_named_by_what_sets_it_apart() -> None:
    sides = sides_of(MIRRORED, ["cross_device_op=hierarchical_copy"], [])
    assert labels(sides) == ("cross_device_op=hierarchical_copy", "cross_device_op=auto")
    assert [side.cell.cross_device_op for side in sides] == ["hierarchical_copy", "auto"]
    assert sides[0].settings == {"cross_device_op": "hierarchical_copy"}


def test_settings_that_are_in_no_cell_set_sides_apart_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_X", raising=False)
    sides = sides_of(MIRRORED, ["inter_op_threads=2"], ["env.TF_X=1"])
    assert labels(sides) == ("inter_op_threads=2, TF_X not set", "inter_op_threads=0, TF_X=1")
    assert sides[0].cell == sides[1].cell
    assert sides[1].environment == {"TF_X": "1"}


def test_two_specs_are_named_by_the_keys_in_which_they_differ() -> None:
    sides = sides_of({**MIRRORED, "name": "one"}, [], ["seed=2"], base_b={**MIRRORED, "name": "two", "loop": ["fit"]})
    assert labels(sides) == ("loop=custom, seed=1", "loop=fit, seed=2")


def test_loops_that_make_no_difference_set_no_sides_apart_whatever_else_does() -> None:
    base = {"engine": ["torch"], "strategy": ["none"], "replicas": [1], "model": ["mlp"]}
    sides = sides_of(base, ["loop=ddp"], ["loop=all_reduce", "batch_size=128"])
    assert labels(sides) == ("batch_size=64", "batch_size=128")
    assert {side.cell.get("loop") for side in sides} == {"ddp"}


@pytest.mark.parametrize(
    ("a", "b", "loops"),
    [(["loop=ddp"], [], ("ddp", "custom")), ([], ["loop=fit"], ("ddp", "fit")), ([], [], None)],
    ids=["side a's", "side b's", "nobody's"],
)
def test_a_name_that_one_side_was_given_is_told_of_the_other_as_its_engine_runs_it(
    a: list[str], b: list[str], loops: tuple[str, str] | None
) -> None:
    base = {"workers": [2], "replicas": [1], "model": ["mlp"]}
    of_a = ["engine=torch", "strategy=data_parallel", *a]
    of_b = ["engine=tensorflow", "strategy=multi_worker_mirrored", *b]
    told = [f"loop={loop}, " for loop in loops] if loops else ["", ""]
    assert labels(sides_of(base, of_a, of_b)) == (
        f"strategy=data_parallel, {told[0]}engine=torch",
        f"strategy=multi_worker_mirrored, {told[1]}engine=tensorflow",
    )


def test_a_side_against_itself_says_so() -> None:
    one, two = sides_of(MIRRORED, [], [])
    assert (one.label, two.label) == ("mirrored ×2 b64", "the same as a")
    assert (one.cell, one.sweep) == (two.cell, two.sweep)


def test_sides_that_one_process_at_a_time_may_hold_a_device_for_are_refused_with_the_way_to_compare_them() -> None:
    told = said({"device": ["tpu"], "strategy": ["tpu"], "replicas": [1]}, [], ["seed=2"])
    assert told.startswith("device: one process at a time may hold 'tpu'")
    assert told.endswith("sweep each by itself and hold the runs against each other with compare")


@pytest.mark.parametrize(
    ("base", "a", "b"),
    [
        (MIRRORED, ["cross_device_op=auto"], []),
        ({**MIRRORED, "replicas": [1]}, ["bytes_per_pack=0"], ["bytes_per_pack=4096"]),
        ({"engine": ["torch"], "strategy": ["none"]}, ["loop=ddp"], ["loop=all_reduce"]),
    ],
    ids=["the default", "what one replica has no use for", "the loop of one program"],
)
def test_what_was_given_and_makes_no_difference_is_refused(base: dict[str, Any], a: list[str], b: list[str]) -> None:
    assert said(base, a, b) == (
        f"--a, --b: nothing sets the sides apart ({', '.join([*a, *b])}); leave both out to compare a side with itself"
    )


def test_a_setting_that_one_sides_device_alone_reads_is_refused_for_both_with_how_to_give_it() -> None:
    of_both = {"strategy": ["none"], "replicas": [1], "gpu_memory_mb": 4096}
    told = "gpu_memory_mb: given 4096, but only trials on virtual-gpu read it; leave it out"
    for a, b, side, other in (("cpu", "gpu", "a", "b"), ("gpu", "cpu", "b", "a")):
        devices = [f"device=virtual-{a}"], [f"device=virtual-{b}"]
        alone = f"or give it to side {other} alone, where that reads it: --{other} gpu_memory_mb=4096"
        assert said(of_both, *devices) == f"side {side}: {told}, {alone}"
    of_one = {key: value for key, value in of_both.items() if key != "gpu_memory_mb"}
    assert said(of_one, ["device=virtual-cpu", "gpu_memory_mb=4096"], ["device=virtual-gpu"]) == f"side a: {told}"
    other = {**of_both, "device": ["virtual-gpu"]}
    assert said(of_both, [], [], base_b=other) == f"side a: {told}", "side b's own spec has it"


def test_sides_with_other_numbers_of_windows_are_refused() -> None:
    assert said(MIRRORED, ["windows=20"], []).startswith("windows: given 20 for side a and 10 for side b")


def test_a_side_with_an_interpreter_of_its_own_runs_on_no_host_that_has_the_engine_in_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Zygote, "launch", lambda _: None)
    monkeypatch.setattr(Zygote, "start", lambda _: None)
    base = {"engine": ["torch"], "strategy": ["none"], "replicas": [1], "launcher": "attach"}
    one, two = sides_of(base, [], [])
    own = replace(one, python="/own/python")
    with side_zygotes([own, two], {"a": "/own/python", "b": "/the/engines/python"}) as zygotes:
        request = request_for(own.cell, own.sweep, Path("data"))
        with pytest.raises(CannotPlace, match="interpreter or revision of its own needs launcher 'local'"):
            launchers()["attach"].place(request, zygotes["a"])
        assert zygotes["b"].plain


@pytest.mark.usefixtures("repo")
def test_sides_of_one_environment_share_a_preloaded_process() -> None:
    with side_zygotes(sides_of(MIRRORED, ["replicas=3"], [])) as zygotes:
        assert zygotes["a"] is zygotes["b"]


@pytest.mark.usefixtures("repo")
def test_two_names_of_one_commit_are_compared_as_two_commits_would_be() -> None:
    with side_zygotes(sides_of(OWN, [], [], revisions=("main", "HEAD"))) as zygotes:
        told = [told_by(zygotes[name], "net.models:make_model") for name in ("a", "b")]
    assert zygotes["a"] is not zygotes["b"]
    assert told[0]["folder"] != told[1]["folder"]


def test_each_side_has_its_own_variables_and_the_record_names_the_versions_that_it_told(repo: Repo) -> None:
    repo.write({"witness.py": WITNESS})
    sides = sides_of({}, ["env.TF_X=1"], ["env.TF_X=2"])
    with side_zygotes(sides) as zygotes:
        seen = [told_by(zygotes[name])["environment"]["TF_X"] for name in ("a", "b")]
        record = with_versions(run_of(sides), zygotes).part(ComparisonRecord)
    assert seen == ["1", "2"]
    told = {"tensorflow": "0.1", "keras": "0.2", "python": sys.version.split()[0]}
    assert [side.versions for side in record.sides] == [told, told]


def test_each_side_runs_in_its_own_interpreter(repo: Repo, tmp_path: Path) -> None:
    python = bare_venv(tmp_path / "new")
    lend_packages(python)
    repo.write({"witness.py": WITNESS})
    sides = sides_of({}, [], [], pythons=(None, python))
    assert [side.python for side in sides] == [None, python]
    assert all(side.label.startswith("TensorFlow ") for side in sides)
    assert sides[1].label.endswith("(…/new/bin/python)")
    with side_zygotes(sides) as zygotes:
        assert [told_by(zygotes[name])["prefix"] for name in ("a", "b")] == [sys.prefix, str(tmp_path / "new")]
        told = told_by(zygotes["b"])
    assert told["file"] == str(repo.root / "witness.py")


def test_a_side_without_an_interpreter_of_its_own_is_named_by_that_of_its_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = bare_venv(tmp_path / "installed")
    lend_packages(python)
    monkeypatch.setattr("harness.run.kinds.sides.python_for", lambda *_: python)
    a, b = sides_of({}, [], [], pythons=(None, python))
    assert (a.python, b.python) == (None, python)
    assert a.label.endswith("(…/installed/bin/python)")
    assert b.label == "the same as a"


def test_an_interpreter_that_cannot_run_trials_names_the_flag(tmp_path: Path) -> None:
    assert said({}, [], [], pythons=(None, str(tmp_path / "x"))).startswith("--python-b: no file at")


def test_each_side_loads_its_own_revision(repo: Repo, place: Path) -> None:
    before = repo.state()
    sides = sides_of(OWN, [], [], revisions=("first", "main"))
    commits = [repo.git("rev-parse", name).strip() for name in ("first", "main")]
    assert [side.commit for side in sides] == commits
    assert labels(sides) == (f"first ({commits[0][:7]})", f"main ({commits[1][:7]})")
    assert sizes(sides) == [1, 2]
    assert list(place.iterdir()) == []
    assert repo.state() == before


def test_against_one_revision_stands_the_working_tree_as_it_is_both_in_the_working_folder(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo.root / "sub")
    sides = sides_of(OWN, [], [], revisions=("main", None))
    assert labels(sides) == (f"main ({sides[0].commit[:7]})", "the working tree with its changes")  # type: ignore[index]
    with side_zygotes(sides) as zygotes:
        told = [told_by(zygotes[name], "net.models:make_model") for name in ("a", "b")]
    assert [entry["size"] for entry in told] == [2, 3]
    assert Path(told[0]["folder"]).parts[-2:] == ("harness-ab", "sub")
    assert told[1]["folder"] == str(repo.root / "sub")
    repo.git("checkout", "--quiet", ".")
    assert sides_of(OWN, [], [], revisions=(None, "first"))[0].label == "the working tree"


def test_a_revision_comes_before_an_editable_install_and_before_pythonpath(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(repo.root / "src"), "src", os.environ["PYTHONPATH"]]))
    assert sizes(sides_of(OWN, [], [], revisions=("first", None))) == [1, 3]


def test_folders_of_the_repository_on_pythonpath_are_those_of_the_revision(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"lib/python/tool.py": WITNESS + "SIZE = 4\n"})
    repo.write({"lib/python/tool.py": WITNESS + "SIZE = 5\n"})
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(repo.root / "lib/python"), os.environ["PYTHONPATH"]]))
    with side_zygotes(sides_of(OWN, [], [], revisions=("main", None))) as zygotes:
        assert [told_by(zygotes[name], "tool:make_model")["size"] for name in ("a", "b")] == [4, 5]


def test_what_a_revision_has_not_is_not_taken_from_the_working_tree(repo: Repo, tmp_path: Path) -> None:
    repo.commit({"late.py": WITNESS})
    (tmp_path / "stubs" / "sitecustomize.py").write_text(f"import sys; sys.path.append({str(repo.root)!r})\n")
    with side_zygotes(sides_of(OWN, [], [], revisions=("first", None))) as zygotes:
        told_by(zygotes["b"], "late:make_model")
        with pytest.raises(UsageError, match="No module named 'late'"):
            told_by(zygotes["a"], "late:make_model")


@pytest.mark.usefixtures("repo")
def test_an_interpreter_and_a_revision_go_together(tmp_path: Path) -> None:
    python = bare_venv(tmp_path / "new")
    lend_packages(python)
    sides = sides_of(OWN, [], ["seed=5"], pythons=(python, None), revisions=(None, "first"))
    with side_zygotes(sides) as zygotes:
        told = [told_by(zygotes[name], "net.models:make_model") for name in ("a", "b")]
    assert [(entry["size"], entry["prefix"]) for entry in told] == [(3, str(tmp_path / "new")), (1, sys.prefix)]
    assert sides[1].label.startswith("seed=5, TensorFlow")
    assert sides[1].label.endswith(f", first ({sides[1].commit[:7]})")  # type: ignore[index]


@pytest.mark.usefixtures("repo")
def test_a_model_of_the_harness_has_no_revisions_to_compare() -> None:
    assert said({}, [], [], revisions=("first", None)) == (
        "--rev-a: a revision is of your own code, but the model 'mnist_cnn' comes with the harness; "
        "give --model package.module:function"
    )


@pytest.mark.usefixtures("repo")
def test_a_revision_that_is_not_there_names_the_flag() -> None:
    assert said(OWN, [], [], revisions=(None, "nowhere")) == "--rev-b: 'nowhere' names no commit of the repository"


def test_a_hash_needs_no_second_name(repo: Repo) -> None:
    commit = repo.git("rev-parse", "first").strip()
    assert sides_of(OWN, [], [], revisions=(commit, None))[0].label == commit[:7]


@pytest.mark.usefixtures("repo")
def test_what_a_reader_should_know_of_the_revisions_is_remarked_on() -> None:
    assert side_remarks(sides_of(OWN, [], [], revisions=("main", None))) == []
    assert side_remarks(sides_of(MIRRORED, ["replicas=3"], [])) == []
    same = sides_of(OWN, [], [], revisions=("main", "HEAD"))
    assert side_remarks(same) == [
        f"A and B are the same commit, {same[0].commit[:7]}: "  # type: ignore[index]
        "this is A against A, which only noise tells apart",
        "uncommitted changes of the working tree are on neither side",
    ]


def test_one_commit_on_both_sides_is_known_beforehand(repo: Repo) -> None:
    first, main = (repo.git("rev-parse", name).strip()[:7] for name in ("first", "main"))
    one, alike = "A and B are the same commit", ": this is A against A, which only noise tells apart"
    assert same_commit(sides_of(OWN, [], [], revisions=("first", first))) == f"{one}, {first}{alike}"
    assert same_commit(sides_of(OWN, [], ["seed=5"], revisions=("main", main))) == f"{one}, {main}"
    assert same_commit(sides_of(OWN, [], [], revisions=("first", "main"))) is None
    assert same_commit(sides_of(OWN, [], [])) is None
    assert same_commit(sides_of(OWN, [], [], revisions=("main", None))) is None, "the working tree has changes"
    repo.git("checkout", "--", ".")
    assert same_commit(sides_of(OWN, [], [], revisions=(None, "main"))) == f"{one}, {main}{alike}"


def test_when_a_side_cannot_start_no_work_tree_and_no_process_is_left(
    repo: Repo, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = repo.state()
    launched: list[Any] = []
    launch = Zygote.launch

    def noted(zygote: Zygote) -> None:
        launch(zygote)
        launched.append(zygote._process)

    monkeypatch.setattr(Zygote, "launch", noted)
    (tmp_path / "stubs" / "keras.py").write_text("raise ImportError('no keras today')\n")
    with (
        pytest.raises(ZygoteError, match="no keras today"),
        side_zygotes(sides_of(OWN, [], [], revisions=("first", "main"))),
    ):
        pass
    assert len(launched) == 2
    assert all(process.poll() is not None for process in launched)
    assert list(place.iterdir()) == []
    assert repo.state() == before


def run_of(sides: tuple[Side, Side]) -> RunManifest:
    """The manifest of a run of these sides."""
    comparison = ComparisonRecord(
        sides=side_records(sides),
        delta=0.01,
        epsilon=0.03,
        margins_source="the defaults",
        half_width=0.01,
        max_blocks=12,
    )
    return manifest(cells=list({side.cell.cell_id: side.cell for side in sides}.values()), comparison=comparison)


def test_sides_come_back_from_the_record_with_their_commits_whatever_the_names_mean_by_then(repo: Repo) -> None:
    sides = sides_of(OWN, ["seed=3"], ["env.TF_X=1"], revisions=("first", "main"))
    kept = RunManifest.model_validate_json(run_of(sides).model_dump_json())
    repo.commit({"src/net/models.py": WITNESS + "SIZE = 9\n"})
    again = sides_of_record(kept)
    assert again == sides
    assert sizes(again) == [1, 2]


@pytest.mark.usefixtures("repo")
def test_an_interpreter_that_is_gone_is_said_when_one_goes_on(tmp_path: Path) -> None:
    python = bare_venv(tmp_path / "new")
    lend_packages(python)
    kept = run_of(sides_of({}, [], [], pythons=(python, None)))
    assert sides_of_record(kept)[0].python == python
    Path(python).unlink()
    with pytest.raises(UsageError, match="--python-a: no file at"):
        sides_of_record(kept)


def test_a_run_that_compares_nothing_has_no_sides() -> None:
    with pytest.raises(UsageError, match="is a run of sweep: it has no ComparisonRecord"):
        sides_of_record(manifest())


def test_a_secret_is_in_no_record_and_a_run_that_would_need_it_is_not_gone_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", "inherited")
    sides = sides_of(MIRRORED, [], ["env.HF_TOKEN=given"])
    kept = run_of(sides)
    assert [side.label for side in sides] == ["HF_TOKEN set to another", "HF_TOKEN set to one value"]
    assert [dict(side.environment) for side in sides] == [{}, {"HF_TOKEN": "given"}]
    assert "inherited" not in kept.model_dump_json()
    assert "given" not in kept.part(ComparisonRecord).model_dump_json()
    with pytest.raises(UsageError, match=r"side b was given env\.HF_TOKEN, which may be a secret and is not kept"):
        sides_of_record(kept)
