"""`doctor --limits` measures once and keeps it; what is kept is shown while it is still this machine's."""

import json
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import api
from harness.environment import Description
from harness.environment.software import package_versions
from harness.errors import HarnessError, Interrupted, StorageError
from harness.record.limits import LimitsRecord, keep_sheet, limits_of_machine, make_place
from harness.record.manifest import Machine
from harness.record.proof import Proof, ProofRecord
from tests.limits import MACHINE, limits

Run = Callable[..., tuple[int, str, str]]


def facts(**changes: Any) -> dict[str, Any]:
    """A machine with what is installed here."""
    packages = {f"package.{name}": version for name, version in package_versions().items()}
    return {
        "machine.id": MACHINE,
        "cpu.usable_cores": 2,
        "python.version": platform.python_version(),
        **packages,
        **{name.replace("_", ".", 1): value for name, value in changes.items()},
    }


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[LimitsRecord]:
    """A machine whose limits are measured in no time, each time a day later; what was measured so far."""
    done: list[LimitsRecord] = []

    def measure(machine: Description) -> LimitsRecord:
        on = f"2026-11-{10 + len(done)}T10:00:00+00:00"
        done.append(limits(created_utc=on, machine=Machine(facts=dict(machine.facts))))
        return done[-1]

    monkeypatch.setattr("harness.run.limits.measure_limits", measure)
    for place in ("harness.environment", "harness.run.limits"):
        monkeypatch.setattr(f"{place}.describe", lambda: Description(facts(), ()))
    return done


def test_limits_are_measured_once_kept_and_then_shown(
    harness: Run, measured: list[LimitsRecord], tmp_path: Path
) -> None:
    code, first, error = harness("doctor", "--limits")
    assert (code, error) == (0, "")
    assert "64.0 GFLOP/s" in first
    assert f"measured in 24 s, kept in results/limits-{MACHINE}-20261110T100000Z.json" in first
    assert next(limits_of_machine(tmp_path / "results", MACHINE), None) == measured[0]
    code, second, _ = harness("doctor", "--limits")
    assert (code, len(measured)) == (0, 1)
    assert "measured 2026-11-10T10:00:00+00:00; --again measures it again" in second
    assert first.splitlines()[:6] == second.splitlines()[:6]


def test_a_sweep_measures_them_first_where_it_is_asked_to(
    harness: Run, measured: list[LimitsRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr("harness.cli._measuring.measure_matrix", lambda *_: seen.append(len(measured)) or tmp_path)
    monkeypatch.setattr("harness.cli._measuring._tell", lambda *_: 0)
    for asked in ([], ["--limits"], ["--limits"]):
        assert harness("sweep", "--strategy", "none", "--replicas", "1", *asked)[0] == 0
    assert seen == [0, 1, 2]
    assert next(limits_of_machine(tmp_path / "results", MACHINE), None) == measured[1]
    code, _, error = harness("sweep", "--strategy", "no_such", "--limits")
    assert (code, len(measured)) == (2, 2), error


def test_explain_measures_them_first_too_and_so_do_both_from_python(
    harness: Run, measured: list[LimitsRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def instead(*_: Any) -> Path:
        seen.append(len(measured))
        raise HarnessError("it would measure")

    monkeypatch.setattr("harness.run.kinds.explain.explain", instead)
    monkeypatch.setattr("harness.run.kinds.measure.measure_matrix", instead)
    for asked in ([], ["--limits"]):
        assert harness("explain", "--strategy", "none", *asked)[0] == 4
    for ask in (api.sweep, api.explain):
        with pytest.raises(HarnessError, match="it would measure"):
            ask(limits=True, strategy="none", replicas=1, results=tmp_path / "results", quiet=True)
    assert seen == [0, 1, 2, 3]
    assert next(limits_of_machine(tmp_path / "results", MACHINE), None) == measured[-1]
    code, _, error = harness("explain", "--strategy", "no_such", "--limits")
    assert (code, len(measured)) == (2, 3), error


def test_again_measures_again_and_keeps_both(harness: Run, measured: list[LimitsRecord], tmp_path: Path) -> None:
    for _ in range(2):
        assert harness("doctor", "--limits", "--again", "--results", "mine")[0] == 0
    assert len(list((tmp_path / "mine").iterdir())) == 2
    assert next(limits_of_machine(tmp_path / "mine", MACHINE), None) == measured[1]


def test_what_is_measured_again_counts_though_a_clock_that_ran_ahead_has_named_another_later(
    harness: Run, measured: list[LimitsRecord], tmp_path: Path
) -> None:
    make_place(tmp_path / "results")
    keep_sheet(tmp_path / "results", limits(created_utc="2027-11-10T23:59:59+00:00"))
    (tmp_path / "results" / f"limits-{MACHINE}-1.json").touch()
    for name in ("20271111T000000Z", "20271111T000001Z"):
        assert f"limits-{MACHINE}-{name}.json" in harness("doctor", "--limits", "--again")[1]
        assert next(limits_of_machine(tmp_path / "results", MACHINE), None) == measured[-1]


@pytest.mark.usefixtures("measured")
def test_what_was_measured_is_kept_beside_a_copy_of_the_last_second_there_can_be(harness: Run, tmp_path: Path) -> None:
    make_place(tmp_path / "results")
    (tmp_path / "results" / f"limits-{MACHINE}-99991231T235959Z.json").touch()
    assert harness("doctor", "--limits", "--again")[0] == 0
    assert len([*(tmp_path / "results").glob("limits-*.json")]) == 2


@pytest.mark.parametrize("change", [{"cpu_usable_cores": 4}, {"package_tensorflow": "2.0"}], ids=["cores", "a package"])
def test_another_number_of_cores_or_another_version_measures_anew(
    harness: Run, measured: list[LimitsRecord], monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    with monkeypatch.context() as before:
        before.setattr("harness.environment.describe", lambda: Description(facts(**change), ()))
        harness("doctor", "--limits")
    harness("doctor", "--limits")
    assert len(measured) == 2


@pytest.mark.usefixtures("measured")
def test_json_is_one_object_and_nothing_else(harness: Run) -> None:
    for _ in range(2):  # measured, then kept
        code, out, error = harness("doctor", "--limits", "--json")
        assert (code, error) == (0, "")
        document = json.loads(out)
        assert document["machine_id"] == MACHINE
        assert document["limits"][0]["limit"] == 64e9


@pytest.mark.usefixtures("measured")
def test_a_damaged_record_is_exit_code_four_in_one_line_and_again_goes_on(harness: Run, tmp_path: Path) -> None:
    harness("doctor", "--limits")
    [kept] = (tmp_path / "results").iterdir()
    kept.write_text("{")
    code, out, error = harness("doctor", "--limits")
    assert (code, out, error.count("\n")) == (4, "", 1)
    assert kept.name in error
    assert "doctor --limits --again" in error
    assert harness("doctor", "--limits", "--again")[0] == 0
    assert harness("doctor", "--limits")[0] == 0


def test_a_place_that_takes_nothing_is_said_before_anything_is_measured(
    harness: Run, measured: list[LimitsRecord], tmp_path: Path
) -> None:
    (tmp_path / "results").write_text("")
    code, out, error = harness("doctor", "--limits")
    assert (code, out, error.count("\n"), measured) == (4, "", 1, [])


def test_again_alone_is_bad_usage(harness: Run, tmp_path: Path) -> None:
    code, out, error = harness("doctor", "--again")
    assert (code, out) == (2, "")
    assert "--again: it measures the limits again, and --limits is not given" in error
    assert list(tmp_path.iterdir()) == []


def proves(monkeypatch: pytest.MonkeyPatch, verdict: Any) -> None:
    """A machine of which one answer is had in no time."""
    proof = Proof(subject="cell", name="mirrored ×2 b8", device="gpu", verdict=verdict, words="it said <so>")

    def prove(machine: Description, _results: Path, _progress: object, tell: Callable[[Proof], None]) -> ProofRecord:
        tell(proof)
        return ProofRecord(
            machine_id=MACHINE,
            created_utc="2026-11-23T15:10:09+00:00",
            harness_version="0.1.0",
            seconds=9.0,
            run_id="20261121T012345Z-prove-a1b2",
            proofs=[proof],
            machine=Machine(facts=dict(machine.facts), warnings=["the clock steps"]),
        )

    monkeypatch.setattr("harness.run.prove.acceptance.prove", prove)
    monkeypatch.setattr("harness.environment.describe", lambda: Description(facts(), ()))


@pytest.mark.parametrize(("verdict", "code"), [("passed", 0), ("unknown", 0), ("failed", 1)])
def test_prove_tells_each_answer_keeps_a_sheet_and_a_page_and_ends_with_1_where_something_failed(
    harness: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verdict: Any, code: int
) -> None:
    proves(monkeypatch, verdict)
    ended, said, error = harness("doctor", "--prove")
    assert (ended, error) == (code, "")
    assert "mirrored ×2 b8, gpu: it said <so>" in said.splitlines()[0]
    assert f"kept in results/proof-{MACHINE}-20261123T151009Z.json" in said
    page = (tmp_path / "results" / f"proof-{MACHINE}-20261123T151009Z.html").read_text()
    assert "it said &lt;so&gt;" in page
    assert "<so>" not in page
    assert "2 cores of" in page
    assert "the clock steps" in page
    assert json.loads(harness("doctor", "--prove", "--json")[1])["proofs"][0]["verdict"] == verdict


@pytest.mark.parametrize(
    ("stop", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted; no sheet is kept of a part; begin again with --prove"),
        (Interrupted("2 trials are kept"), 130, "interrupted; no sheet is kept of a part; begin again with --prove"),
        (
            StorageError("no room; free some space", "the-run"),
            4,
            "no room; free some space, then begin again with --prove",
        ),
    ],
)
def test_prove_that_is_stopped_says_that_no_sheet_is_kept_and_not_how_to_go_on_with_its_cells_alone(
    harness: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stop: BaseException, code: int, words: str
) -> None:
    def prove(*_: object) -> ProofRecord:
        raise stop

    monkeypatch.setattr("harness.run.prove.acceptance.prove", prove)
    monkeypatch.setattr("harness.environment.describe", lambda: Description(facts(), ()))
    assert harness("doctor", "--prove") == (code, "", f"harness: {words}\n")
    assert list((tmp_path / "results").glob("proof-*")) == []


def test_prove_is_not_asked_beside_limits(harness: Run) -> None:
    code, _, error = harness("doctor", "--prove", "--limits")
    assert (code, error) == (2, "harness: --prove: it is given beside --limits; ask one of them\n")


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("ignored", ["", "results/\n", "results/*.*\n"])
@pytest.mark.parametrize("verb", [["doctor", "--limits"], ["doctor", "--prove"], ["import", "table.csv"]])
def test_what_a_verb_without_a_sweep_keeps_is_told_once_where_git_does_not_ignore_it(
    harness: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ignored: str, verb: list[str]
) -> None:
    proves(monkeypatch, "passed")
    (tmp_path / "table.csv").write_text("strategy,replicas,model,images_per_s\nmirrored,2,resnet20,100\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text(ignored)
    named = ["--name", "a.b"] if verb[0] == "import" else []  # so that the second pattern is of its folder, too
    told = "" if ignored else "harness: git does not ignore the new results: echo '*' > results/.gitignore\n"
    assert [harness(*verb, *named)[::2] for _ in range(2)] == [(0, told), (0, "")]
