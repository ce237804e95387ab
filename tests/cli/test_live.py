"""The live table on terminals of many sizes, read back from a terminal's screen."""

import functools
import gzip
import io
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyte
import pytest
from rich.console import Console, ConsoleDimensions

from harness.analysis.estimates import noise_now
from harness.analysis.estimates.noise_now import usual_noise
from harness.cli import _live
from harness.cli._live import TerminalProgress
from harness.record import RunStore
from tests.comparisons import MIRRORED, as_run, stored
from tests.explained import explain_run
from tests.record.examples import failed_trial
from tests.run.played import play
from tests.synthetic import default_cells, failed, make_cell, make_run, unproved


class Terminal(io.StringIO):
    """A terminal of a size; what is written is shown on a screen that can be read."""

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__()
        self.screen = pyte.HistoryScreen(columns, lines, history=500)
        self._stream = pyte.Stream(self.screen)
        self.raw = ""

    def write(self, text: str) -> int:
        self.raw += text
        self._stream.feed(text.replace("\n", "\r\n"))
        return len(text)

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    @property
    def scrolled(self) -> str:
        """Lines that have left the screen at its top."""
        return "\n".join("".join(line[x].data for x in sorted(line)) for line in self.screen.history.top)


@pytest.fixture(autouse=True)
def drawn_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of drawings take their time; the tests ask for those that they look at."""
    monkeypatch.setattr(_live, "EVERY_S", 3600.0)
    monkeypatch.setattr(_live, "PER_S", 1 / 60)


def redraw(progress: TerminalProgress) -> None:
    """Draw now, whether a trial is at the clock or not."""
    progress.display.release()
    progress._reckon()
    progress.display.refresh()
    progress.display.hold()


def test_the_usual_noise_is_that_of_a_sweep_and_of_no_instrument(tmp_path: Path) -> None:
    explained = explain_run()
    stored(explained, tmp_path)
    assert usual_noise(tmp_path, explained.manifest.model_copy(update={"run_id": "now"})) == {}
    manifest, trials = make_run([MIRRORED], blocks=1, faults=False)
    stored(as_run(manifest, trials, "earlier"), tmp_path)
    assert [*usual_noise(tmp_path, explained.manifest.model_copy(update={"run_id": "now"}))] == [trials[0].cell_id]


def test_for_the_usual_noise_so_many_bytes_of_records_are_read_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, trials = make_run([MIRRORED], blocks=2, faults=False)
    now = as_run(manifest, trials, "now").manifest

    def told(most: int) -> bool:
        monkeypatch.setattr(noise_now, "MOST_BYTES", most)
        return bool(usual_noise(tmp_path, now))

    telling = stored(as_run(manifest, trials, "run-1"), tmp_path) / "trials.jsonl"
    of_telling = telling.stat().st_size
    assert (told(of_telling), told(of_telling - 1)) == (True, False)
    telling.with_name("trials.jsonl.gz").write_bytes(gzip.compress(telling.read_bytes(), mtime=0))
    telling.unlink()
    assert (told(of_telling), told(of_telling - 1)) == (True, False)
    untold = [failed(trial, "crashed", "it died") for trial in trials]
    silent = stored(as_run(manifest, untold, "run-2"), tmp_path) / "trials.jsonl"
    both = of_telling + silent.stat().st_size
    assert (told(both), told(both - 1)) == (True, False)


@functools.cache
def small() -> Any:
    """Two blocks of 17 cells, some of which fail."""
    return make_run(default_cells(batch_sizes=(128,)), blocks=2, windows=6)


def watched(columns: int, lines: int, at: str, run: Any = None, **console: Any) -> tuple[str, Terminal]:
    """What the screen shows at a place of a played run, and the terminal after its end."""
    terminal = Terminal(columns, lines)
    settings = {"force_terminal": True, "width": columns, "height": lines, "color_system": "standard", **console}
    progress = TerminalProgress(Console(file=terminal, **settings))
    seen: list[str] = []

    def look(place: str) -> None:
        if place == at and not seen:
            redraw(progress)
            seen.append(terminal.text)

    play(progress, *(run or small()), look)
    assert seen, f"the run never came to {at}"
    return seen[0], terminal


def test_it_says_how_far_it_is_what_is_highest_what_runs_and_how_noisy_it_is() -> None:
    run = make_run([make_cell("none"), make_cell("mirrored", 2)], blocks=3, windows=6, faults=False)
    screen, _ = watched(120, 40, "2 turn 9", run)
    assert "4/6 trials · " in screen
    assert " left" in screen
    assert "block 3/3 · round 10 of 11 · at the clock · " in screen
    assert re.search(r"noise [\d.]+ % a window, expected [\d.]+ %", screen)
    said = " ".join(screen.split())
    assert re.search(
        r"so far mirrored ×2 b32 [\d,]+ examples/s \[[\d,]+ – [\d,]+\] in these minutes, the highest so far, then none",
        said,
    )
    assert re.search(r"distributed 1\.\d\d× no strategy ± [\d.]+ %, of one device", said)
    assert re.search(r"\*  mirrored ×2 b32 +2/3 +[\d,]+ +± [\d.]+ % +100 %", screen)
    assert "the highest so far" in screen
    assert screen.count("at the clock") == 2


def test_one_trial_each_has_figures_without_an_interval() -> None:
    screen, _ = watched(100, 30, "1 turn 0")
    assert re.search(r"so far mirrored ×2 b128 \S+ [\d,]+ examples/s, the highest", " ".join(screen.split()))


def test_the_first_block_shows_throughput_as_windows_come() -> None:
    screen, _ = watched(100, 30, "0 turn 8", make_run([make_cell("none"), make_cell("mirrored", 2)], faults=False))
    assert "0/4" in screen
    assert "nothing to expect yet" in screen
    assert all("–" not in line for line in screen.splitlines() if "b32" in line)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 16), (24, 6)])
def test_it_fits_the_terminal(size: tuple[int, int]) -> None:
    columns, lines = size
    screen, terminal = watched(columns, lines, "1 turn 9")
    shown = [line for line in screen.splitlines() if line]
    assert "24/34" in screen
    assert len(shown) <= lines
    # a line that had been folded would leave more lines behind than are taken away at the end
    assert "34/34" not in terminal.text + terminal.scrolled


def test_forty_columns_have_the_cell_its_throughput_and_what_is_highest() -> None:
    screen, _ = watched(40, 16, "1 turn 9")
    assert "mirrored ×2 b" in screen
    assert "more cells" in screen
    assert "trials" not in screen


def test_an_unproved_cell_is_marked_and_is_nobodys_fastest() -> None:
    run = make_run(
        [make_cell("none", 1, 32), make_cell("mirrored", 2, 32)],
        faults=False,
        blocks=2,
        windows=6,
        change=lambda record: unproved(record) if record.cell.replicas == 2 else record,
    )
    screen, _ = watched(120, 40, "1 turn 9", run)
    assert re.search(r"mirrored ×2 b32 .* unproved", screen)
    assert re.search(r"none ×1 b32 .* 100 %", screen)


def test_cells_that_do_not_compete_are_not_held_against_one_another() -> None:
    shapes = (("none", 1), ("mirrored", 2))
    cells = [make_cell(*shape, model=model) for model in ("mlp", "resnet20") for shape in shapes]
    screen, _ = watched(120, 40, "1 turn 9", make_run(cells, blocks=2, windows=6, faults=False))
    rows = [line for line in screen.splitlines() if " 1/2 " in line]
    assert [" 100 % " in line for line in rows] == [line.startswith("*") for line in rows]
    assert sum(line.startswith("*") for line in rows) == 2


def test_a_base_case_that_is_in_several_groups_of_a_block_has_as_many_trials_as_it_gets() -> None:
    cells = [make_cell("none"), make_cell("mirrored", 2), make_cell("mirrored", 3)]
    screen, _ = watched(120, 40, "3 ended", make_run(cells, blocks=2, groups=2, windows=6, faults=False))
    assert re.search(r"none ×1 b32 +4/4 ", screen)
    assert "3 of 3 cells done" in screen


def test_a_figure_stays_from_the_end_of_its_trial_to_the_next_group() -> None:
    screen, _ = watched(120, 40, "0 ended", make_run([make_cell("none"), make_cell("mirrored", 2)], faults=False))
    assert len(re.findall(r"×[12] b32 +1/4 +[\d,]+ +ok", screen)) == 2


def test_what_ended_badly_stays_above_and_the_table_goes() -> None:
    _, terminal = watched(100, 60, "over")
    left = terminal.scrolled + terminal.text
    assert "wrong result  mirrored ×3 b128 hierarchical_copy: the reduction is wrong" in left
    assert "of fastest" not in left
    assert "\x1b[?25h" in terminal.raw  # the cursor is back


def test_without_colour_there_is_none() -> None:
    coloured, plain = watched(100, 30, "1 turn 3")[1], watched(100, 30, "1 turn 3", no_color=True)[1]
    colours = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7]|4[0-7])m")
    assert colours.search(coloured.raw)
    assert not colours.search(plain.raw)


def test_a_terminal_that_is_resized_is_drawn_anew() -> None:
    terminal = Terminal(100, 30)
    console = Console(file=terminal, force_terminal=True, width=100, height=30)
    progress = TerminalProgress(console)

    def look(place: str) -> None:
        if place == "1 turn 2":
            console.size = ConsoleDimensions(50, 12)
            terminal.screen.resize(12, 50)
        if place == "1 turn 9":
            redraw(progress)
            shown = [line for line in terminal.text.splitlines() if line]
            assert sum("24/34" in line for line in shown) == 1
            assert max(map(len, shown)) <= 50

    play(progress, *small(), look)


def test_nothing_is_drawn_while_a_window_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_live, "PER_S", 1000.0)
    monkeypatch.setattr(_live, "EVERY_S", 0.0)
    terminal = Terminal(100, 30)
    progress = TerminalProgress(Console(file=terminal, force_terminal=True, width=100, height=30))
    drawn: list[int] = []
    waited = threading.Event()

    def look(place: str) -> None:
        if place.startswith("0 turn"):
            before = len(terminal.raw)
            waited.wait(0.02)  # twenty ticks of the thread
            drawn.append(len(terminal.raw) - before)

    play(progress, *make_run([make_cell("none"), make_cell("mirrored", 2)], blocks=1, faults=False), look)
    assert len(drawn) > 10
    assert set(drawn) == {0}


def test_while_trials_are_set_up_the_thread_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_live, "PER_S", 1000.0)
    monkeypatch.setattr(_live, "EVERY_S", 0.0)
    terminal = Terminal(100, 30)
    progress = TerminalProgress(Console(file=terminal, force_terminal=True, width=100, height=30))
    grown: list[bool] = []

    def look(place: str) -> None:
        if place == "0 set-up" and not grown:
            before = len(terminal.raw)
            grown.append(until(lambda: len(terminal.raw) > before))

    play(progress, *make_run([make_cell("none")], blocks=1, faults=False), look)
    assert grown == [True]


def until(what: Callable[[], bool], tries: int = 2000) -> bool:
    """Whether it comes true; looked at every millisecond."""
    return any(what() or threading.Event().wait(0.001) for _ in range(tries))


def test_what_a_record_says_cannot_move_the_cursor() -> None:
    terminal = Terminal(80, 24)
    progress = TerminalProgress(Console(file=terminal, force_terminal=True, width=80, height=24))
    progress.started("the-run", 1, 5.0)
    progress.ended(failed_trial(reason="\x1b[2J\x1b]0;title\x07 gone \u202e"))
    progress.finished()
    assert "\x1b[2J" not in terminal.raw
    assert "\x07" not in terminal.raw


def test_an_earlier_run_on_this_machine_says_what_noise_to_expect(tmp_path: Any) -> None:
    cells = [make_cell("none"), make_cell("mirrored", 2)]
    old, trials = make_run(cells, faults=False, window_noise=0.02)
    machine = old.machine.model_copy(update={"facts": {**old.machine.facts, "machine.id": "here"}})
    with RunStore.create(tmp_path, old.model_copy(update={"machine": machine})) as store:
        for trial in trials:
            store.append(trial)
    new = old.model_copy(update={"run_id": "20261122T000000Z-new-0000", "machine": machine})
    terminal = Terminal(100, 30)
    progress = TerminalProgress(Console(file=terminal, force_terminal=True, width=100, height=30), tmp_path)
    progress.plan(new, [])
    assert set(progress.noises) == {cell.cell_id for cell in cells}
    assert all(0.01 < value < 0.04 for value in progress.noises.values())


def test_runs_that_cannot_be_listed_say_nothing_of_what_noise_to_expect_and_do_not_stop_a_sweep(tmp_path: Any) -> None:
    (tmp_path / "results").write_text("")
    new, _ = small()
    terminal = Terminal(100, 30)
    progress = TerminalProgress(Console(file=terminal, force_terminal=True), tmp_path / "results")
    progress.plan(new, [])
    assert progress.noises == {}


def test_a_wide_sweep_shows_the_cell_at_the_clock_even_where_rows_are_few() -> None:
    screen, _ = watched(100, 14, "1 turn 9")
    assert sum("at the clock" in line for line in screen.splitlines()) == 2
