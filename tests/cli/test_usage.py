"""The command line without a measurement: what is said, where, with which exit code, and that nothing is written."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.api import sweep
from harness.cli import GROUPS
from harness.environment import usable_cores
from harness.record import RunStore
from harness.run.launchers import launchers
from tests.comparisons import as_run
from tests.comparisons import stored as stored_run
from tests.record.examples import RUN_ID, manifest, trial
from tests.synthetic import make_run

Run = Callable[..., tuple[int, str, str]]
ELSEWHERE = sorted(name for name, launcher in launchers().items() if launcher.elsewhere)
FEW = list(range(1, 201))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("sweep --replicas 1,,2", "replicas: given '', expected a whole number"),
        ("sweep --replicas 0", "sweep: replicas: given 0, expected greater than or equal to 1"),
        ("sweep --replicas 100000", "less than or equal to 4096"),
        ("sweep --seed -1", "seed: given -1, expected greater than or equal to 0"),
        ("sweep --timeout nan", "timeout: given nan, expected a finite number"),
        ("sweep --window inf", "window: given inf, expected a finite number"),
        ("sweep --window 1e308", "window: given 1e+308, expected less than or equal to"),
        ("sweep --cycle-time 60000", "cycle_time: given 60000, expected less than or equal to 1000"),
        ("sweep --trials 999999999", "trials: given 999999999, expected less than or equal to 1000"),
        ("sweep --strategy miror", "did you mean 'mirrored'?"),
        ("sweep --strategy mirrored,mirrored", "strategy: given ['mirrored', 'mirrored']: a value is listed twice"),
        ("sweep --cross-device-op ncll --strategy mirrored", "did you mean 'nccl'?"),
        ("sweep --model minst_cnn", "did you mean 'mnist_cnn'?"),
        ("sweep --model : --dry-run", "model: ':' is not one of"),
        ("ab --model : --b replicas=2", "model: ':' is not one of"),
        ("sweep --data digit", "did you mean 'digits'?"),
        ("sweep --model keras:Resnet50 --dry-run", "keras.applications has no 'Resnet50'; did you mean 'ResNet50'?"),
        ("sweep --data tfds:mnsit --dry-run", "has no 'mnsit'; did you mean 'mnist'?"),
        ("sweep --data digits,tfds:mnsit/a:1.2.3", "has no 'mnsit'; did you mean 'mnist'?"),
        ("ab --data tfds:mnsit --b replicas=2 --strategy mirrored", "has no 'mnsit'; did you mean 'mnist'?"),
        ("faults --data tfds:mnsit --dry-run", "has no 'mnsit'; did you mean 'mnist'?"),
        ("validate --data tfds:mnsit", "has no 'mnsit'; did you mean 'mnist'?"),
        *((f"sweep --data digist --launcher {elsewhere}", "did you mean 'digits'?") for elsewhere in ELSEWHERE),
        ("sweep --data tfrecord:~nobodys/* --dry-run", "data: given '~nobodys/*', expected a path: Could not"),
        ("sweep --data folder:~nobodys --dry-run", "data: given '~nobodys', expected a path: Could not"),
        ("sweep --device cpu", "device: 'cpu' is not one of gpu, tpu, virtual-cpu, virtual-gpu"),
        ("sweep --engine horovod --device gpu", "device: 'gpu' is not one of virtual-cpu (engine horovod)"),
        ("explain --engine tensorflow,horovod --device gpu", "engine: 'horovod' has no cell to explain ("),
        ("sweep --strategy one_device --cross-device-op nccl --replicas 2", "no combination is left to run ("),
        ("ab --workers 2 --b xla=true", "; several workers: --strategy multi_worker_mirrored or parameter_server"),
        ("sweep --engine jax --replicas 2 --strategy none", "; several replicas: --strategy data_parallel or multi_"),
        ("faults --engine torch --strategy mirrored", "'mirrored' is not one of none, data_parallel (engine torch)"),
        ("sweep --batch-size 9 --batch-scope global --replicas 2 --strategy mirrored", "do not divide a global batch"),
        ("sweep --name a/b", "name: given 'a/b'"),
        ("sweep --model mlp,nosuch:f --dry-run", "model: 'nosuch:f': cannot import 'nosuch': No module named 'nosuch'"),
        ("sweep --step nosuch.a:f --dry-run", "step: 'nosuch.a:f': cannot import 'nosuch.a': No module named 'nosuch'"),
        ("sweep --check nosuch:f --dry-run", "check: 'nosuch:f': cannot import 'nosuch'"),
        ("faults --model nosuch:f --dry-run", "model: 'nosuch:f': cannot import 'nosuch'"),
        ("sweep --check abc --dry-run", "check: given 'abc', expected package.module:function"),
        ("faults --strategy mirrored,mirrored --dry-run", "given ['mirrored', 'mirrored']: a value is listed twice"),
        ("validate --rounds 99999999999", "--rounds"),
        ("validate --batch-size 0", "validate: batch_size: given 0"),
        ("compare x --along strategy --across-machines", "--across-machines: is for two runs"),
        ("sweep --launcher slrum --dry-run", "launcher: 'slrum' is not one of attach, local, ray, slurm; did you mean"),
        ("sweep --launcher ssh", "launcher: 'ssh' is not one of attach, local, ray, slurm"),
        ("sweep --listen 10.0.0.1:port", "listen: given '10.0.0.1:port', expected HOST:PORT"),
        ("sweep --hosts -1", "hosts: given -1, expected greater than or equal to 0"),
        ("sweep --join-timeout 0", "join_timeout: given 0.0, expected greater than 0"),
        ("sweep --slurm-args --partition='x", "slurm_args: given"),
        ("worker", "--connect"),
        ("worker --connect nowhere", "connect: given 'nowhere', expected HOST:PORT, such as 10.0.0.1:7000"),
        ("worker --connect a:70000", "connect: given 'a:70000'"),
        (
            "worker --connect foo..bar:7000",
            "connect: given 'foo..bar:7000', expected HOST:PORT, such as 10.0.0.1:7000: each part of a name between",
        ),
        ("worker --connect a:7000 --address b:7001", "address: given 'b:7001', expected HOST alone"),
        (f"worker --connect a:7000 --address {'b.' * 200}c", "address: given 'b.b."),
        ("sweep --launcher attach --listen foo..bar", "listen: given 'foo..bar', expected HOST:PORT"),
        ("worker --connect a:7000", "token: there is none; give --token-file, --token or HARNESS_TOKEN"),
        ("worker --connect a:7000 --token short", "token: it has 5 characters, expected at least 16"),
        ("worker --connect a:7000 --token-file none", "token_file: cannot read 'none'"),
        ("sweep --batchsize 3", "no flag '--batchsize'; did you mean '--batch-size'?"),
        ("sweep --replicas", "--replicas"),
        ("sweep none.toml", "SPEC: no file at 'none.toml'"),
        ("sweep .", "SPEC: cannot read '.'"),
        ("sweep a.toml b.toml", "unexpected extra argument"),
        ("sweep --resume nonsense", "RUN: no run 'nonsense'"),
        ("sweep --resume latest", "RUN: no run 'latest'"),
        ("sweep --resume x --replicas 2", "--resume: goes on with a run as it was planned; it takes no --replicas"),
        ("sweep --resume x spec.toml", "it takes no SPEC"),
        ("sweep --resume x --dry-run", "it takes no --dry-run"),
        ("sweep --retry", "--retry: runs again what failed in an earlier run; name that with --resume RUN"),
        ("swep", "no verb 'swep'; expected one of"),
        ("report", "RUN"),
        ("show nothing", "RUN: no run 'nothing'"),
        ("export nothing", "RUN: no run 'nothing'"),
    ],
)
def test_bad_usage_is_exit_code_two_one_line_and_nothing_written(
    harness: Run, tmp_path: Path, arguments: str, says: str
) -> None:
    code, out, error = harness(*arguments.split())
    assert code == 2
    assert out == ""
    assert error.startswith("harness: ")
    assert error.count("\n") == 1
    assert says.lower() in error.lower()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("argument", ["--strategy=", "--name=", "--replicas= ", "--device=,"])
def test_an_empty_value_is_bad_usage(harness: Run, tmp_path: Path, argument: str) -> None:
    code, _, error = harness("sweep", argument, "--dry-run")
    assert (code, error.count("\n")) == (2, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("replica = [1]", "unknown key 'replica'; did you mean 'replicas'?"),
        ('replicas = "2"', "replicas: given '2'"),
        ("replicas = [[1]]", "replicas: given [1]"),
        ("replicas = {n = 1}", "replicas: given {'n': 1}"),
        ("replicas = []", "replicas: expected at least one value"),
        ("trials = 2.0", "trials: given 2.0"),
        ("timeout = true", "timeout: given True"),
        ("timeout = inf", "timeout: given inf"),
        ("model = 2026-01-01", "model: given datetime.date"),
        ("[replicas]\n", "replicas: given {}"),
        ('"a\\nb" = 1', "unknown key 'a\\nb'"),
        ("replicas = [1", "not valid TOML"),
        ('name = "x\\ny"', "name: given 'x\\ny'"),
        ('data_dir = "\\u0000"', "data_dir: given '\\x00': expected a text without NUL characters"),
        (f"replicas = {FEW}\nbatch_size = {FEW}\nprefetch = {FEW}", "given 16,000,000 combinations (2 × 200 × 200"),
    ],
)
def test_a_bad_spec_is_exit_code_two_and_one_line_that_names_the_file(
    harness: Run, tmp_path: Path, toml: str, says: str
) -> None:
    spec = tmp_path / "a spec.toml"
    spec.write_text(toml)
    code, out, error = harness("sweep", str(spec))
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert str(spec) in error
    assert says in error
    assert list(tmp_path.iterdir()) == [spec]


def test_a_dry_run_prints_the_matrix_the_order_and_an_estimate_and_writes_nothing(harness: Run, tmp_path: Path) -> None:
    code, out, error = harness(
        "sweep", "--dry-run", "--strategy", "mirrored,one_device", "--replicas", "1,2", "--trials", "2", "--model=mlp"
    )
    assert (code, error) == (0, "")
    wide = usable_cores() > 1  # no strategy on the whole machine
    assert f"{4 + wide} cells, {8 + 2 * wide} trials, about " in out
    assert "none ×1 b64  mlp, digits, virtual-cpu  (base case)" in out
    assert "one_device × 2 replicas: strategy 'one_device' runs on 1 replica" in out
    assert out.count("\nblock ") == 2
    assert "seed 1, plan " in out
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_finds_code_in_the_working_folder_and_does_not_run_it(harness: Run, tmp_path: Path) -> None:
    (tmp_path / "of_my_own.py").write_text("raise SystemExit('it was run')")
    assert harness("sweep", "--dry-run", "--model", "of_my_own:make_model")[::2] == (0, "")


def test_a_dry_run_can_be_read_by_a_machine(harness: Run, tmp_path: Path) -> None:
    code, out, _ = harness("sweep", "--dry-run", "--json", "--strategy=mirrored", "--replicas=2,3", "--trials=2")
    plan = json.loads(out)
    assert code == 0
    bases = 1 + (usable_cores() > 1)
    assert len(plan["cells"]) == 2 + bases
    assert plan["trials"] == 2 * (2 + bases)
    assert len(plan["base_cell_ids"]) == bases
    [group] = plan["plan"]["blocks"][0]
    assert sorted(group) == sorted(cell["cell_id"] for cell in plan["cells"])
    assert list(tmp_path.iterdir()) == []


def test_without_arguments_the_default_sweep_is_planned(harness: Run) -> None:
    code, out, _ = harness("sweep", "--dry-run")
    assert code == 0
    assert "mnist_cnn, digits, virtual-cpu" in out
    assert "nccl" in out


def test_a_path_with_spaces_and_letters_of_other_alphabets_is_a_path(harness: Run, tmp_path: Path) -> None:
    spec = tmp_path / "Größe λ.toml"
    spec.write_text('name = "ok"\nstrategy = ["none"]\nreplicas = [1]\n', encoding="utf-8")
    assert harness("sweep", str(spec), "--dry-run")[0] == 0
    results = tmp_path / "Ergebnisse für λ"
    RunStore.create(results, manifest()).close()
    code, out, _ = harness("list", "--results", str(results))
    assert code == 0
    assert RUN_ID in out


def test_help_names_every_verb_and_every_flag(harness: Run) -> None:
    _, out, _ = harness("--help")
    for verb in ("sweep", "report", "doctor", "list", "show", "export"):
        assert verb in out
    assert [panel for panel in re.findall(r"─ (\w+) ─", out) if panel != "Options"] == list(GROUPS)
    _, out, _ = harness("sweep", "--help")
    for flag in ("--cross-device-op", "--num-packs", "--resume", "--dry-run", "--json", "--results"):
        assert flag in out


def test_help_says_the_least_value_of_a_setting_that_nobody_would_guess(harness: Run) -> None:
    _, out, _ = harness("sweep", "--help")
    said = " ".join(out.replace("│", " ").split())
    assert "measured windows a trial, at least 5" in said
    assert "at least 1 " not in said


def test_help_has_each_verb_below_the_title_of_its_group(harness: Run) -> None:
    _, out, _ = harness("--help")
    boxes = dict(re.findall(r"╭─ (\w+) ─+╮\n(.*?)╰", out, re.DOTALL))
    for title, verbs in GROUPS.items():
        assert tuple(re.findall(r"^│ (\w+) ", boxes[title], re.MULTILINE)) == verbs


def test_an_empty_results_folder_says_how_to_begin(harness: Run, tmp_path: Path) -> None:
    code, out, _ = harness("list")
    assert code == 0
    assert "python -m harness sweep" in out
    assert harness("list", "--json")[1] == "[]\n"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A run of two trials under `results`."""
    with RunStore.create(tmp_path / "results", manifest()) as store:
        for block in (0, 1):
            store.append(trial(block))
    return store.path


def test_trials_that_were_attempted_again_are_told_apart_from_those_that_were_planned(
    harness: Run, tmp_path: Path
) -> None:
    with RunStore.create(tmp_path / "results", manifest()) as store:
        for block in (0, 1, 1):
            store.append(trial(block))
    out = harness("list")[1]
    assert "   2 of 2 trials and 1 again  1 cell\n" in out
    assert "3 of 2" not in out


def test_folders_of_a_run_that_was_copied_are_listed_by_names_that_differ(harness: Run, stored: Path) -> None:
    shutil.copytree(stored, stored.with_name("kept"))
    out = harness("list")[1]
    assert sorted(line.split()[0] for line in out.splitlines()[1:]) == sorted([RUN_ID, "kept"])
    assert f"(run {RUN_ID})" in next(line for line in out.splitlines() if line.startswith("kept"))
    assert harness("show", "kept")[0] == 0


@pytest.mark.parametrize("name", ["latest", RUN_ID, RUN_ID[:12], f"results/{RUN_ID}", f"results/{RUN_ID}/run.json"])
def test_a_run_is_named_by_latest_its_id_its_beginning_or_its_path(harness: Run, stored: Path, name: str) -> None:
    assert stored.is_dir()
    code, out, error = harness("show", name)
    assert (code, error) == (0, "")
    assert "mirrored ×2" in out


def test_what_is_for_machines_parses(harness: Run, stored: Path) -> None:
    [row] = json.loads(harness("list", "--json")[1])
    assert (row["run_id"], row["trials"], row["planned"]) == (RUN_ID, 2, 2)
    assert row["path"] == str(stored.relative_to(Path.cwd()))
    shown = json.loads(harness("show", "latest", "--json")[1])
    assert RUN_ID in json.dumps(shown)
    assert json.loads(harness("export", "latest", "--format", "json")[1]) == shown


def test_resuming_a_run_that_is_complete_but_was_killed_before_it_said_so_finishes_it(
    harness: Run, stored: Path
) -> None:
    code, out, error = harness("sweep", "--resume", RUN_ID)
    assert (code, error) == (0, "")
    assert "records: " in out
    assert json.loads((stored / "run.json").read_text())["status"] == "finished"
    assert len((stored / "trials.jsonl").read_text().splitlines()) == 2


def test_an_unknown_export_format_is_answered_with_those_there_are(harness: Run, stored: Path) -> None:
    assert stored.is_dir()
    code, _, error = harness("export", "latest", "--format", "cvs")
    assert code == 2
    assert "did you mean 'csv'?" in error


@pytest.mark.parametrize("verb", ["show", "export"])
def test_a_run_that_cannot_be_read_is_exit_code_four(harness: Run, stored: Path, verb: str) -> None:
    (stored / "run.json").write_text("{}")
    code, _, error = harness(verb, str(stored))
    assert (code, error.count("\n")) == (4, 1)
    assert "run.json" in error


def test_a_results_place_that_cannot_be_used_is_exit_code_four(harness: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, error = harness("sweep", "--strategy=none", "--replicas=1", "--results=file/below")
    assert (code, error.count("\n")) == (4, 1)
    assert "file/below" in error


@pytest.mark.parametrize(
    "arguments",
    ["--help", "list", "show --help", "sweep --dry-run"],
)
def test_the_command_line_never_imports_tensorflow(tmp_path: Path, arguments: str) -> None:
    code = (
        "import sys; from harness.cli import run; run(sys.argv[1:]); "
        "sys.exit(','.join(sorted({'tensorflow', 'keras', 'tensorflow_datasets'} & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path.cwd()), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 1  # sys.exit of a text
    assert done.stderr.splitlines()[-1] == ""


def test_a_list_says_how_many_trials_are_unproved(harness: Run, stored: Path) -> None:
    records = stored / "trials.jsonl"
    one, two = (json.loads(line) for line in records.read_text().splitlines())
    two |= {"status": "unproved", "reason": 'it said "status":"unproved"'}
    one |= {"reason": 'it said "status":"unproved"'}
    records.write_text("".join(json.dumps(it, separators=(",", ":")) + "\n" for it in (one, two)))
    assert "2 of 2 trials, 1 unproved  " in harness("list")[1]
    assert json.loads(harness("list", "--json")[1])[0]["unproved"] == 1


def test_what_failed_is_tried_again_only_where_that_is_asked_for(
    harness: Run, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr("harness.run.runner.resume_as", lambda *given: asked.append(given[-1]))
    for flags in ((), ("--retry",)):
        harness("sweep", "--resume", str(stored), *flags)
        sweep(resume=stored, quiet=True, retry=bool(flags))
    assert asked == [False, False, True, True]


@pytest.mark.parametrize(("faults", "code"), [(True, 1), (False, 0)])
def test_a_strict_sweep_with_a_wrong_cell_is_exit_code_one_and_all_is_said_and_kept(
    harness: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: bool, code: int
) -> None:
    found, trials = make_run(faults=faults)
    assert any(trial.status == "wrong_result" for trial in trials) is faults
    kept = stored_run(as_run(found, trials, "swept"), tmp_path / "results")
    monkeypatch.setattr("harness.cli._measuring.measure_matrix", lambda *_: kept)
    loose, strict = (harness("sweep", "--replicas", "1", *asked) for asked in ([], ["--strict"]))
    assert (loose[0], strict[0]) == (0, code)
    assert loose[1:] == strict[1:]
    assert harness("sweep", "--resume", "swept", "--strict")[0] == code
