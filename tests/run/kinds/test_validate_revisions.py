"""`validate` about two equal revisions: two work trees of one commit, or the reason why there are none."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness.analysis.estimates.verdict import Margins
from harness.analysis.validation.decisions import decisions_of
from harness.analysis.validation.summary import validation_of
from harness.errors import Interrupted, UsageError
from harness.record import RunStore
from harness.record.trial import Plant
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.validate import REVISIONS_EVERY, ValidateSettings, ValidationRun, equal_revision
from harness.run.progress import Quiet
from harness.spec import Sweep
from tests.record.examples import cell, manifest
from tests.run.benches import press_ctrl_c
from tests.run.fakes import FakeZygote, Play
from tests.run.repositories import Repo
from tests.run.stubs import WITNESS, install, told_by
from tests.run.validated import ONE, Handed, ValidateBench, as_planted

COMMIT = "c" * 40
OWN = cell(model="net:make_model")


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """The user's model, committed, in the working folder."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    made = Repo.new(tmp_path / "work")
    made.commit({"net.py": WITNESS})
    monkeypatch.chdir(made.root)
    return made


@dataclass
class RevisionBench(ValidateBench):
    """Rounds of one cell, of which the fourth has work trees of the commit."""

    rounds: int = REVISIONS_EVERY
    cells: tuple[object, ...] = (ONE,)  # type: ignore[assignment]
    trees: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.commit, self.why = equal_revision(Sweep(), [ONE])
        self.patch.setattr("harness.run.kinds.validate.revision_zygote", self._of_tree)

    @property
    def asked(self) -> ValidateSettings:
        return replace(super().asked, commit=self.commit, revisions_left_out=self.why)

    def _of_tree(self, repository: object, tree: Path, *_: object) -> Handed:
        assert (tree / "net.py").exists()
        self.trees.append(tree)
        zygote = FakeZygote(self.folder / f"tree-{len(self.trees)}", self.plays, diary=self.diary)
        return Handed(zygote, self.starts)


def test_in_every_fourth_round_of_a_cell_all_arms_have_work_trees_and_the_sides_of_a_decision_their_own() -> None:
    settings = ValidateSettings(Sweep(), (ONE, cell()), AbSettings(Margins()), 32, commit=COMMIT)
    plan = settings.plan()
    assert plan.commit == COMMIT
    for number, of in enumerate(plan.rounds):
        whole = number // 2 % REVISIONS_EVERY == REVISIONS_EVERY - 1
        a, again, *slow = of.arms
        assert {arm.revision for arm in of.arms} == {whole}
        assert again.apart == (number // 2 % 2 == 1)
        assert (again.name == "a-revision") == whole
        assert not any(arm.apart for arm in [a, *slow])
        assert again.plant == Plant(kind=again.plant.kind, share=0) if again.plant else None
    assert sum(of.arms[0].revision for of in plan.rounds) == 8


def test_a_plan_without_a_commit_says_why_and_has_two_preloaded_processes_instead() -> None:
    settings = ValidateSettings(Sweep(), (ONE,), AbSettings(Margins()), 4, revisions_left_out="no git")
    plan = settings.plan()
    assert (plan.commit, plan.revisions_left_out) == (None, "no git")
    assert [of.arms[1].name for of in plan.rounds] == ["a-again", "a-apart"] * 2
    assert replace(settings, rounds=3).plan().revisions_left_out is None, "three rounds would have had none"


def test_they_are_decided_and_told_by_themselves_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repo: Repo
) -> None:
    before = repo.state()
    bench = RevisionBench(tmp_path / "bench", monkeypatch)
    run = bench.start()
    again = [one for one in decisions_of(run.manifest, run.trials) if one.plant is None]
    assert [(one.zygotes, one.revisions) for one in again] == [(1, False), (2, False), (1, False), (2, True)]
    record = validation_of(run)
    found = [(spread.zygotes, spread.revisions, spread.decisions) for spread in record.spreads]
    assert found == [(1, False, 2), (2, False, 1), (2, True, 1)]
    assert [spread.false_alarms.of for spread in record.spreads if spread.false_alarms] == [2, 1, 1]
    assert record.revisions_left_out is None
    assert [what for what, _ in bench.starts] == ["launched"] * 4 + ["waited for"] * 4, "they import side by side"
    assert [who for _, who in bench.starts[:4]] == [who for _, who in bench.starts[4:]]
    assert len({*bench.trees}) == 2
    assert not any(tree.exists() for tree in bench.trees)
    assert repo.state() == before


def test_where_there_is_no_repository_the_record_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = RevisionBench(tmp_path / "bench", monkeypatch).start()
    record = validation_of(run)
    assert record.complete
    assert record.revisions_left_out == "the working folder is in no git working tree"
    assert not any(spread.revisions for spread in record.spreads)


def test_one_that_was_stopped_goes_on_with_the_commit_that_it_was_begun_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repo: Repo
) -> None:
    bench = RevisionBench(tmp_path / "bench", monkeypatch)
    _stop_in_the_last_round(bench)
    begun = bench.plan.commit
    assert begun == repo.git("rev-parse", "HEAD").strip()
    repo.commit({"net.py": "# another\n"})
    run = bench.resume()
    assert run.manifest.status == "finished"
    assert bench.plan.commit == begun
    assert [one.revisions for one in decisions_of(run.manifest, run.trials) if one.plant is None][-1]


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("gone", ["commit", "repository"])
def test_one_whose_commit_is_gone_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    bench = RevisionBench(tmp_path / "bench", monkeypatch)
    _stop_in_the_last_round(bench)
    monkeypatch.chdir(Repo.new(tmp_path / "other").root if gone == "commit" else tmp_path)
    kept = len(bench.stored.trials)
    with pytest.raises(UsageError, match=r"^--resume: .*(names no commit|is in no git working tree)[^\n]*$"):
        bench.resume()
    assert len(bench.stored.trials) == kept


def _stop_in_the_last_round(bench: RevisionBench) -> None:
    seen = iter(range(10**6))

    def stops(_: object) -> Play:
        return Play(2, press_ctrl_c) if next(seen) == 1 else Play()

    usual = bench._of_tree

    def stopping(repository: object, tree: Path, *more: object) -> Handed:
        handed = usual(repository, tree, *more)
        handed.zygote.plays = as_planted(kind=stops)
        return handed

    bench.patch.setattr("harness.run.kinds.validate.revision_zygote", stopping)
    with pytest.raises(Interrupted):
        bench.start()
    bench.patch.setattr("harness.run.kinds.validate.revision_zygote", usual)


def test_each_work_tree_has_the_users_code_and_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repo: Repo
) -> None:
    install(tmp_path, monkeypatch)
    commit, _ = equal_revision(Sweep(), [OWN])
    plan = ValidateSettings(Sweep(), [OWN], AbSettings(Margins()), 4, commit=commit).plan()
    with RunStore.create(tmp_path / "results", manifest(cells=[OWN], validation=plan)) as store:
        run = ValidationRun(store, Quiet())
        with run.environments() as run.zygotes:
            assert list(run.zygotes) == ["tensorflow", "apart", "revision", "revision-apart"]
            told = [told_by(arm.zygote, "net:make_model") for arm in run.arms()]
    places = [Path(one["file"]).parent for one in told]
    assert places[:2] == [repo.root, repo.root]
    assert len({*places}) == 3
    assert not any(place.is_relative_to(repo.root) or place.exists() for place in places[2:])
    assert [Path(one["folder"]) for one in told] == places


# why not


def test_code_of_the_users_own_is_compared_where_all_of_it_is_committed(repo: Repo) -> None:
    commit = repo.git("rev-parse", "HEAD").strip()
    repo.write({"notes.txt": "", "results/run.json": ""})
    assert equal_revision(Sweep(), [OWN]) == (commit, None)
    repo.write({"layers.py": ""})
    assert equal_revision(Sweep(), [OWN]) == (None, _CHANGED)
    assert equal_revision(Sweep(), [cell()]) == (commit, None), "a model of the harness is the same in any revision"


_CHANGED = "the working tree has changes that HEAD has not, so that HEAD may be other code; commit them"


def test_changes_that_are_not_committed_are_a_reason(repo: Repo) -> None:
    repo.write({"net.py": WITNESS + "SIZE = 2\n"})
    assert equal_revision(Sweep(), [cell(), OWN]) == (None, _CHANGED)


def test_a_repository_without_a_commit_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Repo.new(tmp_path / "new").root)
    assert equal_revision(Sweep(), [cell()]) == (None, "'HEAD' names no commit of the repository")


@pytest.mark.usefixtures("repo")
def test_processes_of_agents_are_a_reason() -> None:
    commit, why = equal_revision(Sweep(launcher="attach"), [cell()])
    assert commit is None
    assert why is not None
    assert why.startswith("launcher: with 'attach' trials are forked from processes of agents")
