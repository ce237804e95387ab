"""Input pipelines beside what their models take: on the terminal, on the page, in tables and exports."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis import RunSummary, summarise
from harness.analysis.pipelines import fed_models, stages_of
from harness.errors import UsageError
from harness.record import Run
from harness.record.trial import Executed, TrialRecord
from harness.report.export import exporters
from harness.report.figures import pipelines_figure
from harness.report.kinds import presentation_of
from harness.report.notebook import SweepResult
from harness.report.page.report import render
from harness.report.tables.cells import pipeline_frame
from harness.report.tables.pipelines import pipeline_rows, stages_table
from harness.report.tables.subject_columns import PIPELINE_COLUMNS
from harness.report.tables.sweep import ranking_table
from harness.report.terminal.run import run_text
from harness.report.words.brief import brief_lines
from harness.report.words.pipelines import lines_of
from harness.spec.pipeline import AppetiteCell
from tests.report.pipelines import CPU_S, DECODED, EQUAL, FAST, RATES, SLOW, run_at, unproved
from tests.report.quantities import run_of
from tests.synthetic import make_cell


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An input that gives more than the model takes, one that gives less, one that gives as much, and one cut off."""
    return run_at(RATES, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def summary(run: Run) -> RunSummary:
    """What is read from its records."""
    return summarise(run.manifest, run.trials)


def test_what_a_model_takes_and_what_is_cut_off_are_in_no_ranking_and_left_out_of_none(summary: RunSummary) -> None:
    [work] = summary.workloads
    assert [cell.trials.cell for cell in work.ranking] == [FAST, EQUAL, SLOW]
    assert work.unranked == ()
    assert all(cell.vs_none is None for cell in work.cells)


def test_each_input_is_held_against_what_the_model_takes(summary: RunSummary) -> None:
    [model] = fed_models(summary.workloads[0])
    limits = {fed.summary.trials.cell: fed.limit for fed in model.inputs}
    assert limits == {FAST: "later", SLOW: "now", EQUAL: "undecided"}
    assert [fed.headroom.value for fed in model.inputs] == pytest.approx([2.3, 1.0, 0.5], rel=0.01)
    assert [fed.headroom.method for fed in model.inputs] == ["paired t"] * 3
    assert model.fastest.processors == pytest.approx(CPU_S * model.appetite.value)


def test_the_answer_says_at_which_rate_input_is_the_limit(summary: RunSummary) -> None:
    beside, others, alone = lines_of(summary.workloads[0])
    assert re.search(r"mnist_cnn at batch 64 takes \d{3} examples/s from batches that wait on its device", beside)
    assert re.search(r"its fastest, input b64, gives 2,\d{3}: input is the limit at 2\.\d+× \[.*\] the current", beside)
    assert others == (
        "Of its 3 inputs: 1 not the limit, 1 the limit now (input b64 cache none), 1 undecided (input b64 cache none "
        "parallel_calls 1)."
    )
    assert alone.startswith("Both were measured alone.")
    assert brief_lines(summary)[:2] == (beside, others)


def page_of(made: Run) -> str:
    return render(made.manifest, made.trials, summarise(made.manifest, made.trials))


ALONE = FAST.model_copy(update={"model": "none", "data": "mine:examples"})
FILES = {ALONE.model_copy(update={"prefetch": count}): 2000.0 - count for count in range(12)}
"""Inputs of data of one's own that feed no model."""


def test_inputs_that_feed_no_model_are_ranked_and_told_beside_nothing(tmp_path: Path) -> None:
    made = run_at(dict(list(FILES.items())[:2]), tmp_path)
    found = summarise(made.manifest, made.trials)
    [work] = found.workloads
    assert fed_models(work) == ()
    assert work.workload.label == "input of mine:examples, virtual-cpu"
    assert brief_lines(found)[0].startswith("Fastest: input b64 prefetch 0, ")
    columns = {head.name for head in ranking_table(work, found.noise).columns}
    assert not {"model takes", "input is the limit", "processors to feed it"} & columns
    assert {row["feeds"] for row in pipeline_rows(made)} == {None}
    page = page_of(made)
    assert "none on" not in page
    assert page.count("<svg") < page_of(run_at(FILES, tmp_path / "many")).count("<svg"), "of few the figure stands once"


def test_of_many_inputs_that_feed_no_model_the_figure_is_of_the_fastest_and_names_no_strategy(tmp_path: Path) -> None:
    page = page_of(run_at(FILES, tmp_path))
    assert "best of each strategy" not in page
    assert "The fastest" in page


def test_beside_inputs_of_models_each_answer_is_told_in_its_own_words(tmp_path: Path) -> None:
    made = run_at({FAST.appetite: 1000, FAST: 2300, ALONE: 500}, tmp_path)
    fed, *_ = brief_lines(summarise(made.manifest, made.trials))
    takes = r"mnist_cnn, digits: mnist_cnn at batch 64 takes .* input is the limit at 2\."
    assert re.match(takes, fed)
    made = run_at({ALONE: 500, FAST.model_copy(update={"model": "none", "data": "mine:others"}): 700}, tmp_path / "own")
    lines = brief_lines(summarise(made.manifest, made.trials))
    assert [line.partition(":")[0] for line in lines[:2]] == ["mine", "mine"]
    assert all(": The only cell that was measured: input b64, " in line for line in lines[:2])


def test_files_that_only_the_cache_was_filled_from_are_told_to_make_no_difference(tmp_path: Path) -> None:
    def lines_at(cache: str, *stages: str) -> list[str]:
        one, many = (FAST.model_copy(update={"cache": cache, "shards": count}) for count in (1, 8))
        made = run_at({one.appetite: 1000, one: 2300, many: 2200}, tmp_path / cache)
        executed = Executed(input=["TensorSlice", *stages, "Shuffle(9)"])
        made.trials[:] = [trial.model_copy(update={"executed": executed}) for trial in made.trials]
        return list(lines_of(summarise(made.manifest, made.trials).workloads[0]))

    told = (
        "In every timed window examples came from the cache, so shards could make no difference: add --cache none to "
        "see one."
    )
    assert lines_at("auto", "Cache")[1] == told
    assert told not in lines_at("none")


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (500, "input is the limit now, at 0.5"),
        (1000, "these trials cannot tell whether input is the limit, "),
        (4000, "input is the limit at "),
    ],
)
def test_one_input_is_told_by_itself(tmp_path: Path, rate: float, said: str) -> None:
    made = run_at({FAST.appetite: 1000, FAST: rate}, tmp_path)
    [beside, _alone] = lines_of(summarise(made.manifest, made.trials).workloads[0])
    assert said in beside
    assert "its input b64 gives" in beside


def test_one_trial_and_a_run_that_goes_on_tell_no_limit(run: Run) -> None:
    once = [trial for trial in run.trials if trial.block == 0]
    [beside, *_rest] = lines_of(summarise(run.manifest, once).workloads[0])
    assert "one trial cannot tell whether input is the limit: use more --trials" in beside
    going_on = run.manifest.model_copy(update={"status": "running"})
    [beside, *rest] = lines_of(summarise(going_on, run.trials).workloads[0])
    assert "what the model takes so far" in beside
    assert len(rest) == 1


def test_nothing_is_said_of_a_limit_where_it_was_not_measured_what_the_model_takes(run: Run) -> None:
    others = [trial for trial in run.trials if not isinstance(trial.cell, AppetiteCell)]
    summary = summarise(run.manifest, others)
    assert list(lines_of(summary.workloads[0])) == []
    assert "Fastest: the input, batch 64" in run_text(run.manifest, others, summary, 100, False)


def test_the_ranking_has_what_the_model_takes_by_each_input(summary: RunSummary) -> None:
    [work] = summary.workloads
    table = ranking_table(work, summary.noise)
    names = [column.name for column in table.columns]
    assert "× no strategy" not in names
    said = {row[names.index("cell")]: row[names.index("input is the limit")] for row in table.rows}
    assert list(said.values()) == ["no", "undecided", "yes"]
    assert {row[names.index("processors to feed it")][0] for row in table.rows} <= {"1", "2"}


def test_each_stage_has_what_comes_out_behind_it(summary: RunSummary) -> None:
    [work] = summary.workloads
    found = [(stage.pipeline.trials.cell, stage.cut) for stage in stages_of(work)]
    assert found == [(FAST, "decode"), (FAST, ""), (SLOW, "decode"), (SLOW, "")]
    table = stages_table(work)
    assert [row[:2] for row in table.rows[2:]] == [("input b64 cache none", part) for part in ("decode", "all of it")]


def test_an_input_that_could_not_be_proved_is_no_answer_and_said_to_be_left_out(run: Run) -> None:
    made = unproved(run, FAST)
    summary = summarise(made.manifest, made.trials)
    beside, others, alone = lines_of(summary.workloads[0])
    assert "; its fastest, input b64 cache none parallel_calls 1, gives " in beside
    assert others.startswith("Of its 2 ranked inputs: 1 the limit now (input b64 cache none), 1 undecided")
    text = " ".join(run_text(made.manifest, made.trials, summary, 100, False).split())
    assert f"{alone} 1 measured cell is unproved and left out of the ranking (" in text
    made = unproved(run, FAST, EQUAL)
    beside, _ = lines_of(summarise(made.manifest, made.trials).workloads[0])
    assert "; its only input that could be proved, input b64 cache none, gives 500: input is the limit now" in beside


def test_where_no_input_could_be_proved_terminal_and_page_have_nothing_to_recommend(run: Run) -> None:
    made = unproved(run, FAST, EQUAL, SLOW)
    summary = summarise(made.manifest, made.trials)
    nothing = "Nothing to recommend: of 3 cells none could be proved."
    assert brief_lines(summary)[0] == nothing
    text = " ".join(run_text(made.manifest, made.trials, summary, 100, False).split())
    assert f"The answer {nothing} 3 measured cells are unproved and left out of the ranking" in text
    assert nothing in render(made.manifest, made.trials, summary)


def test_terminal_and_page_say_it_first(run: Run, summary: RunSummary) -> None:
    for width in (70, 100, 240):
        text = run_text(run.manifest, run.trials, summary, width, False)
        assert "By stage" in text
        assert "unproved" not in text
    page = render(run.manifest, run.trials, summary)
    [headline] = re.findall(r'<h2 class="headline">(.*?)</h2>', page)
    assert headline.startswith("Input is the limit at 2.")
    assert headline.endswith("the current rate: mnist_cnn at batch 64, input b64.")
    assert "What the input gives of what the model takes" in page
    assert "no strategy" not in page.split('id="environment"')[0]


def test_the_figure_has_a_dot_for_each_input_and_the_csv_its_figures(summary: RunSummary) -> None:
    picture = pipelines_figure(fed_models(summary.workloads[0]), "inputs")
    assert picture is not None
    assert [row["input_is_the_limit"] for row in picture.data] == ["no", "undecided", "yes"]
    assert [row["feeds"] for row in picture.data] == ["mnist_cnn at batch 64"] * 3
    assert pipelines_figure((), "none") is None


def test_for_other_tools_a_row_has_what_the_figure_says_and_one_a_stage_what_is_cut_off(
    run: Run, summary: RunSummary
) -> None:
    found = [row for row in pipeline_rows(run) if row["up_to"] is None]
    assert {row["cell"]: row["input_is_the_limit"] for row in found} == {
        "input b64": "no",
        "input b64 cache none": "yes",
        "input b64 cache none parallel_calls 1": "undecided",
    }
    assert {(row["feeds"], row["unit"], row["status"]) for row in found} == {
        ("mnist_cnn at batch 64", "examples/s", "ok")
    }
    slow = next(row for row in found if row["cell"] == "input b64 cache none")
    assert slow["input_over_model"] == pytest.approx(slow["input_per_s"] / slow["model_takes_per_s"], rel=0.01)
    assert slow["input_over_model_low"] < slow["input_over_model"] < slow["input_over_model_high"] < 1
    assert slow["processors_to_feed_it"] == pytest.approx(CPU_S * slow["model_takes_per_s"])
    picture = pipelines_figure(fed_models(summary.workloads[0]), "inputs")
    assert picture is not None
    assert {row["cell_id"]: row for row in picture.data} == {row["cell_id"]: row for row in found}
    of_stages = [row for row in pipeline_rows(run) if row["up_to"] is not None]
    assert [(row["cell"], row["up_to"], row["cell_id"]) for row in of_stages] == [
        (name, "decode", DECODED.cell_id) for name in ("input b64", "input b64 cache none")
    ]
    assert {row[name] for row in of_stages for name in ("input_over_model", "feeds")} == {None}
    assert all(600 * 0.9 < row["input_per_s"] < 600 * 1.1 for row in of_stages)


def test_csv_json_and_frames_have_the_same_rows(run: Run) -> None:
    rows = pipeline_rows(run)
    columns = [column.name for column in PIPELINE_COLUMNS]
    assert [["run_id", "side", *row] for row in rows] == [columns] * len(rows)
    frame = pipeline_frame([run])
    assert list(frame) == columns
    assert frame["input_is_the_limit"].dropna().tolist() == ["no", "yes", "undecided"]
    own = presentation_of(run.manifest).exporters()
    assert json.loads(own["json"].export(run, None) or "")["pipelines"] == rows
    assert (own["pipelines"].export(run, None) or "").splitlines()[0].split(",") == columns[2:]


def test_an_input_beside_which_no_model_was_measured_has_a_row_of_its_own(run: Run) -> None:
    others = replace(run, trials=[trial for trial in run.trials if not isinstance(trial.cell, AppetiteCell)])
    found = [row for row in pipeline_rows(others) if row["up_to"] is None]
    assert [row["model_takes_per_s"] for row in found] == [None] * 3
    assert None not in [row["input_per_s"] for row in found]


def test_what_is_cut_off_and_ended_badly_has_a_row_that_says_how(run: Run) -> None:
    def failed(trial: TrialRecord) -> TrialRecord:
        ended = {"status": "crashed", "reason": "it fell", "windows": [], "step_time_s": None}
        return trial.model_copy(update=ended) if trial.cell == DECODED else trial

    of_stages = [row for row in pipeline_rows(replace(run, trials=[*map(failed, run.trials)])) if row["up_to"]]
    assert {(row["up_to"], row["status"], row["input_per_s"]) for row in of_stages} == {("decode", "crashed", None)}


def test_a_run_without_pipelines_has_no_such_rows(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no pipelines; measure some with sweep --work pipeline"):
        pipeline_rows(run_of([make_cell()], tmp_path))


def test_markdown_and_a_notebook_have_the_stages_below_the_ranking(run: Run) -> None:
    markdown = exporters()["markdown"].export(run, None) or ""
    notebook = SweepResult(run)._repr_html_()
    for text in (markdown, notebook):
        assert (
            text.index("input is the limit") < text.index("By stage") < text.index("Each row is the pipeline cut off")
        )
        assert text.count("all of it") == 2
