"""What is wrong, reason by reason: one entry however many cells share it, with evidence that stays within bounds."""

import pytest

from harness.analysis import summarise
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.report.page.report import render
from harness.report.page.sections.wrong import MOST_REASONS
from harness.report.page.trials.detail import MOST_LETTERS
from harness.report.tables.columns import SUMMARY_COLUMNS
from harness.report.tables.sweep import failed_table
from harness.report.words.answer import run_sentences
from harness.report.words.method import recorded_words
from harness.report.words.problems import explained, remarks
from tests.report.pages import Page
from tests.synthetic import NCCL_REASON, RUN_ID, TPU_REASON, failed, make_cell, make_run, warming

CELLS = [make_cell("mirrored", 2, 8 * number) for number in range(1, 81)]


def crashed(record: TrialRecord) -> TrialRecord:
    """For one reason, with a stack of its own."""
    stack = f'Thread 0x{hash(record.cell_id) & 0xFFFFFFFF:x}\n  File "{record.cell_id}.py"\n' + "frame\n" * 2000
    return failed(record, "crashed", "signal 11", phase="build", evidence=stack)


def each_its_own(record: TrialRecord) -> TrialRecord:
    return failed(record, "crashed", f"cannot open shard {record.cell.batch_size}", phase="build")


def test_cells_that_crash_for_one_reason_are_one_entry_with_the_first_ones_evidence() -> None:
    [entry] = explained(summarise(*make_run(CELLS, blocks=1, change=crashed)))
    assert len(entry.cells) == len(CELLS)
    assert entry.other_evidence == len(CELLS) - 1
    assert f"{CELLS[0].cell_id}.py" in entry.evidence
    assert len(entry.evidence) < MOST_LETTERS + 100
    assert "more letters in the record" in entry.evidence


def test_of_several_models_what_failed_says_which() -> None:
    cells = [make_cell("none", 1, 64, model=model) for model in ("mlp", "lstm")]
    manifest, trials = make_run(cells, blocks=1, change=crashed)
    summary = summarise(manifest, trials)
    [entry] = explained(summary)
    assert entry.cells == ("none ×1 b64, mlp (1 of 1 trial)", "none ×1 b64, lstm (1 of 1 trial)")
    assert [row[0] for row in failed_table(summary).rows] == ["none ×1 b64, mlp", "none ×1 b64, lstm"]


def test_a_wrong_cell_is_told_by_what_was_wrong_and_not_by_how_another_of_its_trials_died() -> None:
    def died_then_wrong(record: TrialRecord) -> TrialRecord:
        if record.block == 0:
            return failed(record, "crashed", "killed by signal 9")
        return failed(record, "wrong_result", "the sum is wrong", phase="check") if record.block == 1 else record

    summary = summarise(*make_run(CELLS[:1], blocks=3, change=died_then_wrong))
    [row] = failed_table(summary).rows
    assert (row[1], row[-1]) == ("wrong result", "the sum is wrong")
    [cell] = summary.cells
    assert [column.read(cell) for column in SUMMARY_COLUMNS if column.name == "reason"] == ["the sum is wrong"]


def test_a_cell_of_which_a_trial_was_wrong_is_not_said_to_be_ranked_by_the_others() -> None:
    def once_wrong(record: TrialRecord) -> TrialRecord:
        return record if record.block else failed(record, "wrong_result", "the sum is wrong", phase="check")

    manifest, trials = make_run(CELLS[:2], blocks=3, change=once_wrong)
    summary = summarise(manifest, trials)
    assert not summary.workloads[0].ranking
    words = " ".join(Page(render(manifest, trials, summary)).words.split())
    assert "a cell some of whose trials ended well, and none wrongly, is ranked by those" in words


def test_the_page_says_that_the_stacks_of_the_others_differ() -> None:
    manifest, trials = make_run(CELLS, blocks=1, change=crashed)
    page = render(manifest, trials, summarise(manifest, trials))
    assert page.count('<article class="problem') == 1
    words = " ".join(Page(page).words.split())
    assert "Stacks and output of the first Those of 79 other cells differ" in words


def test_cells_that_die_alike_share_their_evidence_and_nothing_is_said_of_others() -> None:
    def alike(record: TrialRecord) -> TrialRecord:
        return failed(record, "crashed", "signal 11", phase="build", evidence="the same")

    [entry] = explained(summarise(*make_run(CELLS[:5], blocks=2, change=alike)))
    assert (entry.evidence, entry.other_evidence) == ("the same", 0)


def test_more_reasons_than_a_page_can_set_apart_are_rows_of_a_table_and_none_is_dropped() -> None:
    manifest, trials = make_run(CELLS, blocks=1, change=each_its_own)
    page = render(manifest, trials, summarise(manifest, trials))
    assert page.count('<article class="problem') == MOST_REASONS
    words = Page(page).words
    assert f"{len(CELLS) - MOST_REASONS} more reasons, a row each" in words
    for cell in CELLS:
        assert f"cannot open shard {cell.batch_size}" in words


@pytest.mark.parametrize(
    ("reason", "todo"),
    [
        ("the sum is wrong, or nothing was averaged: it is what this process had sent itself", "another --loop"),
        ("the sum is wrong", "another cross-device op or replica count"),
    ],
)
def test_of_a_loop_that_averages_nothing_another_is_to_be_chosen_and_no_other_op(reason: str, todo: str) -> None:
    def alone(record: TrialRecord) -> TrialRecord:
        checks = record.checks.model_copy(update={"reduction": False})
        return failed(record, "wrong_result", reason, phase="check", checks=checks)

    [entry] = explained(summarise(*make_run(CELLS[:1], blocks=1, change=alone)))
    assert entry.remedy.endswith(f"choose {todo}")


MORE_GPUS = "fewer --replicas or --workers here, or more GPUs"
NO_NCCL = "NCCL needs GPUs: leave nccl out of --cross-device-op here, or measure on GPUs (--device gpu)"
NO_TPU = "leave tpu out of --strategy here, or name a TPU with --tpu"
LEFT_OUT = "leave it out of the sweep here; doctor says what this machine can run"


@pytest.mark.parametrize(
    ("reason", "todo"),
    [
        (
            "2 processes on this host need a GPU each, since NCCL refuses two on one, and PyTorch finds 1",
            MORE_GPUS,
        ),
        ("2 replicas need a GPU each, and JAX finds 1", MORE_GPUS),
        ("2 replicas need 2 GPUs besides the 2 of other processes on its host, and TensorFlow finds 3", MORE_GPUS),
        (
            "two processes have got the same GPU, which NCCL refuses: give each host's only once",
            "give each process of a host a GPU of its own",
        ),
        (
            "8 replicas need as many TPU cores, and TensorFlow finds 4",
            "fewer --replicas here, or a TPU with more cores",
        ),
        (NCCL_REASON, NO_NCCL),
        ("cross_device_op 'nccl' reduces between NVIDIA GPUs, and the workers' devices are 'virtual-cpu'", NO_NCCL),
        ("cross_device_op 'nccl' reduces only: TensorFlow gathers with it as with reduction_to_one_device", LEFT_OUT),
        (TPU_REASON, NO_TPU),
        ("model: 'lm' masks its output: each replica takes the mean of what its own share has left", LEFT_OUT),
        (
            "TensorFlow finds no GPU: this build of TensorFlow has no GPU support",
            "measure where there are GPUs, or leave it out of the sweep here",
        ),
    ],
)
def test_what_to_do_about_what_cannot_run_is_about_what_is_lacking(reason: str, todo: str) -> None:
    [entry] = explained(
        summarise(*make_run(CELLS[:1], blocks=1, change=lambda record: failed(record, "unsupported", reason)))
    )
    assert entry.remedy == todo


def stopped_once(status: str) -> tuple[RunManifest, list[TrialRecord]]:
    """A trial of the first cell was interrupted, and run again where the run has finished."""
    manifest, trials = make_run([make_cell(), make_cell("mirrored", 2)], faults=False, status=status)
    first = next(trial for trial in trials if trial.cell == manifest.cells[0])
    kept = [failed(first, "interrupted", "interrupted before it was complete", phase="steady")]
    again = [first.model_copy(update={"attempt": 2, "group": "again"})] if status == "finished" else []
    return manifest, [*kept, *again, *(trial for trial in trials if trial is not first)]


def test_a_trial_that_was_interrupted_and_run_again_is_nothing_wrong() -> None:
    summary = summarise(*stopped_once("finished"))
    assert explained(summary) == ()
    assert [found.text for found in remarks(summary)] == []


def test_an_interrupted_trial_of_an_unfinished_run_is_run_again_by_the_name_of_the_run() -> None:
    summary = summarise(*stopped_once("interrupted"))
    [entry] = explained(summary)
    assert (entry.status, entry.remedy) == ("interrupted", f"--resume {RUN_ID} runs it")
    assert "Trials that did not end well; the throughput is of the rest" not in [one.text for one in remarks(summary)]


def test_trials_that_were_run_again_are_none_of_those_that_were_planned() -> None:
    manifest, trials = stopped_once("finished")
    summary = summarise(manifest, trials)
    assert recorded_words(summary) == "8 of 8 planned trials recorded, and 1 run again"
    unfinished = summarise(manifest.model_copy(update={"status": "interrupted"}), trials)
    assert "8 of 8 planned trials are recorded" in "\n".join(run_sentences(unfinished))


@pytest.mark.parametrize(("lost", "ends"), [(False, "ends it"), (True, "runs the rest")])
def test_trials_of_cells_that_cannot_run_here_are_no_rest_that_resuming_would_run(lost: bool, ends: str) -> None:
    def change(record: TrialRecord) -> TrialRecord | None:
        if record.cell.get("replicas") == 2:
            return failed(record, "unsupported", TPU_REASON) if record.block == 0 else None
        return None if lost and record.block == 3 else record

    cells = [make_cell(), make_cell("mirrored", 2)]
    text = "\n".join(run_sentences(summarise(*make_run(cells, faults=False, status="interrupted", change=change))))
    assert (
        f"{4 if lost else 5} of 8 planned trials are recorded; 3 are of cells that are not supported here, which are "
        f"not tried again. It is not judged before its end; --resume {RUN_ID} {ends}."
    ) in text


def test_a_trial_that_was_run_again_hides_none_that_was_not_run() -> None:
    manifest, trials = stopped_once("finished")
    short = [trial for trial in trials if (trial.cell, trial.block) != (manifest.cells[0], 3)]
    summary = summarise(manifest.model_copy(update={"status": "interrupted"}), short)
    [found] = [found for found in remarks(summary) if found.text == "Planned trials that were not run"]
    assert found.cells == ("none ×1 b32 (1 of 4 planned trials not run)",)
    assert recorded_words(summary) == "7 of 8 planned trials recorded, and 1 run again; 1 did not run"


def test_base_cases_that_every_group_of_a_block_has_were_not_run_again() -> None:
    summary = summarise(*make_run([make_cell(), *(make_cell("mirrored", n) for n in (1, 2))], groups=2, faults=False))
    assert recorded_words(summary) == "16 of 16 planned trials recorded"


@pytest.mark.parametrize("windows", [10, 80])
def test_windows_that_become_longer_are_told_without_a_number_of_windows_that_may_be_fewer(windows: int) -> None:
    cells = [make_cell(), *(make_cell("mirrored", n) for n in (1, 2, 3))]

    def longer(record: TrialRecord) -> TrialRecord:
        return warming(record, -0.3) if record.cell == cells[3] else record

    made = make_run(cells, faults=False, windows=windows, change=longer)
    [remedy] = {found.remedy for found in remarks(summarise(*made)) if "length of a trial" in found.remedy}
    assert remedy.endswith("look for what it accumulates, and use more --windows")


@pytest.mark.parametrize(("steps", "told"), [(1, "3.9 times as long, for one step is"), (2, "3.9 times as long")])
def test_windows_of_another_length_are_remarked_and_why_they_cannot_be_shorter(steps: int, told: str) -> None:
    cells = [make_cell(), make_cell("mirrored", 2), make_cell("mirrored", 3)]

    def slow(record: TrialRecord) -> TrialRecord:
        if record.cell != cells[0] or record.windows is None:
            return record
        seconds = [0.4] * len(record.windows.seconds)
        windows = record.windows.model_copy(update={"steps_per_window": steps, "seconds": seconds})
        return record.model_copy(update={"windows": windows})

    found = remarks(summarise(*make_run(cells, faults=False, window_noise=0.0, change=slow)))
    [remark] = [remark for remark in found if "another length" in remark.text]
    [cell] = remark.cells
    assert cell == f"none ×1 b32 ({told})"
