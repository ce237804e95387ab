"""Progress in pipes, logs and GitHub Actions."""

import io
import sys

import pytest

from harness.cli._lines import GitHubGroups, VerdictLines
from harness.cli._live import TerminalProgress
from harness.cli._measuring import progress_for
from harness.run.progress import Quiet
from tests.record.examples import failed_trial
from tests.run.played import play
from tests.synthetic import default_cells, failed, make_cell, make_run


def test_a_pipe_gets_lines_without_control_characters_and_the_figures_so_far_before_each_block() -> None:
    out = io.StringIO()
    play(VerdictLines(out), *make_run(default_cells(batch_sizes=(128,)), blocks=2, windows=6))
    lines = out.getvalue().splitlines()
    assert all(line.isprintable() for line in lines)
    so_far = [number for number, line in enumerate(lines) if line.startswith("so far: mirrored ×2 b128")]
    assert len(so_far) == 1
    assert lines[so_far[0] + 1].startswith("block 2 of 2: 17 trials take turns, about ")
    assert sum("examples/s" in line for line in lines if line.startswith("[")) > 15


def test_a_figure_that_nothing_has_changed_is_not_said_again() -> None:
    out = io.StringIO()
    lines = VerdictLines(out)
    manifest, trials = make_run([make_cell("none", 1, 64, model=model) for model in ("mlp", "resnet20")], blocks=1)
    lines.plan(manifest, trials[:1])
    for _ in range(2):
        lines.block(1, 2, 1)
    assert out.getvalue().count("block 2 of 2") == 2
    assert out.getvalue().count("so far: ") == 1


def test_github_folds_each_block_and_marks_what_went_wrong_once() -> None:
    out = io.StringIO()
    play(GitHubGroups(out), *make_run(default_cells(batch_sizes=(128,)), blocks=2, windows=6))
    lines = out.getvalue().splitlines()
    assert [line.split("::")[1] for line in lines if line.startswith("::")][:4] == [
        "group",
        "endgroup",
        "group",
        "endgroup",
    ]
    warnings = [line for line in lines if line.startswith("::warning::")]
    assert sum("hierarchical_copy" in line for line in warnings) == 1
    assert not any("unsupported" in line for line in warnings)
    assert all(line.isprintable() for line in lines)
    inside = lines[lines.index(next(line for line in lines if line.startswith("::group::"))) + 1]
    assert inside.startswith("[1/")


def test_github_hears_which_look_comes_as_a_pipe_does() -> None:
    told = []
    for listener in (VerdictLines, GitHubGroups):
        out = io.StringIO()
        lines = listener(out)
        lines.started("run", 10, 60.0)
        lines.look(2, 4, 8)
        lines.block(5, 8, 2)
        told.append(out.getvalue().splitlines()[-1])
    said = "block 6 of 8 (look 2 of 4 after 8): 2 trials take turns, about "
    assert [line.partition(said)[0] for line in told] == ["", "::group::"]
    assert all(said in line and line.endswith(" s left") for line in told)


@pytest.mark.parametrize("listener", [VerdictLines, GitHubGroups])
def test_of_several_models_each_line_says_which(listener: type[VerdictLines]) -> None:
    out = io.StringIO()
    cells = [make_cell("none", 1, 64, model=model) for model in ("mlp", "my.models:net")]
    play(listener(out), *make_run(cells, blocks=1, change=lambda record: failed(record, "crashed", "so be it")))
    lines = out.getvalue().splitlines()
    for model in ("mlp", "my.models:net"):
        assert sum(line.endswith(f"none ×1 b64, {model}: crashed: so be it") for line in lines) == 1 + (
            listener is GitHubGroups
        )


@pytest.mark.parametrize("reason", ["::add-mask::x", "a\n::error::b", "##[command]x", "50 % \x1b[31mred"])
def test_what_a_record_says_is_no_command_to_github(reason: str) -> None:
    out = io.StringIO()
    progress = GitHubGroups(out)
    progress.started("the-run", 1, 5.0)
    progress.ended(failed_trial(reason=reason))
    progress.finished()
    lines = out.getvalue().splitlines()
    assert [line for line in lines if line.startswith("::")] == [lines[-1]]
    assert lines[-1].startswith("::warning::")
    assert "##[" not in out.getvalue()
    assert "%" not in lines[-1].replace("%25", "")
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize(
    ("tty", "environment", "expected"),
    [
        (True, {"TERM": "xterm-256color"}, TerminalProgress),
        (True, {"TERM": "dumb"}, VerdictLines),
        (True, {"TERM": ""}, VerdictLines),
        (False, {"TERM": "xterm"}, VerdictLines),
        (False, {"GITHUB_ACTIONS": "true"}, GitHubGroups),
        (True, {"GITHUB_ACTIONS": "true", "TERM": "xterm"}, GitHubGroups),
    ],
)
def test_who_listens_depends_on_where_it_runs(
    tty: bool, environment: dict[str, str], expected: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_ACTIONS", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: tty, raising=False)
    assert type(progress_for(False, False)) is expected
    assert type(progress_for(True, False)) is Quiet
    assert type(progress_for(False, True)) is Quiet
