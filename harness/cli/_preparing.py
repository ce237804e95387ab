"""How far `prepare` is, as one line that is written anew on a terminal or a line a file elsewhere; and its end."""

import math
import shlex
import statistics
import time
from pathlib import Path
from typing import TextIO

from harness.cli._terminal import heeds_control
from harness.record.tfrecords import Features, Preparation, WrittenShard
from harness.run.preparing.asked import FilesListener
from harness.run.progress import duration, say_line
from harness.spec.inputs import FILES
from harness.visible import one_line, plural, significant

READ_S = 10.0
"""So often it is told how many examples have been read."""
LEAST_S = 0.5
"""No speed is told of files that took less together: whole ones are looked for ten times a second."""
TOKENS = 32
"""The most of an example that a model of text takes in the command to train; it may be given more."""


class FileLines(FilesListener):
    """Files, examples a second and the time left."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._moves = out, heeds_control(out)
        self._files = self._done = 0
        self._ended: list[tuple[float, int]] = []
        """When files were whole, and their examples."""
        self._read_at = time.monotonic()

    def read(self, examples: int) -> None:
        """Say so now and then."""
        if examples and time.monotonic() - self._read_at >= READ_S:
            self._read_at = time.monotonic()
            self.said(f"{plural(examples, 'example')} read so far, to know how many there are and which")

    def begun(self, examples: int, files: int, whole: int) -> None:
        """Say what there is to do."""
        self._files, self._done, self._ended = files, whole, []
        before = f", {whole} of them whole already" if whole else ""
        self.said(f"{plural(examples, 'example')} in {plural(files, 'file')}{before}")

    def file(self, shard: WrittenShard) -> None:
        """One more."""
        self._done += 1
        self._ended.append((time.monotonic(), shard.examples))
        rest = self._files - self._done
        text = f"[{self._done}/{self._files}]{self._speed(rest)}"
        if not self._moves:
            say_line(text, self._out)
            return
        end = "\n" if not rest else ""
        self._raw(f"\r\x1b[2K{one_line(text)}{end}")

    def _speed(self, rest: int) -> str:
        """Of the files after the first, since that one waited for processes to start; and how long `rest` will take."""
        (first, _), *later = self._ended
        took = later[-1][0] - first if later else 0.0
        if took < LEAST_S:
            return ""
        left = f", about {duration(took / len(later) * rest)} left" if rest else ""
        return f" {_rate(sum(examples for _, examples in later) / took)} examples/s{left}"

    def said(self, words: str) -> None:
        """A line of its own."""
        say_line(words, self._out)

    def _raw(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):  # nobody reads it any more, which must not cost the files
            self._moves = False


def end_lines(target: Path, features: Features, new: bool) -> list[str]:
    """What is there now, what it took and whether reading is faster for it, where that is `new`, and how to train on
    it."""
    size = sum(shard.bytes for shard in features.shards)
    files, examples = plural(len(features.shards), "file"), features.examples or 0
    lines = [f"{target}: {plural(examples, 'example')} in {files}, {_megabytes(size)}, digest {features.digest}"]
    if (of := features.preparation) is not None and new:
        took = [_took(of)] if of.wall_s else []  # of a call that was killed before it had kept any of it
        lines += [*(_each_took(of) if of.ways else took), *_pays(of, examples)]
    elif not new:
        lines.append("nothing was missing: every file is as it was written")
    return [*lines, _how_to_train(target, features)]


def _how_to_train(target: Path, features: Features) -> str:
    """By a model that takes such examples, of which the default one takes images alone."""
    told = "train a model of your own on it" if features.kind == "own" else "train on it"
    model = _model_for(features)
    with_model = f" --model {shlex.quote(model)}" if model else ""
    return f"{told}: python -m harness sweep --data {shlex.quote(f'{FILES}{target}')}{with_model}"


def _model_for(features: Features) -> str:
    """With the sizes that its examples ask for; empty is the default one."""
    if features.kind not in ("text", "categories"):
        return {"table": "mlp", "own": "package.module:function"}.get(features.kind, "")
    count, below = features.only_input.shape[0] or 0, features.vocabulary
    if features.kind == "categories":
        name, sizes = "recommender", {"tables": count, "rows": below}
    else:
        next_token = features.target is None
        name, sizes = "gpt" if next_token else "lstm", {"tokens": min(TOKENS, count - next_token), "vocabulary": below}
    return f"{name}({','.join(f'{key}={size}' for key, size in sizes.items() if size)})"


def _took(of: Preparation) -> str:
    ran = [(one.by, one.processes) for one in of.earlier]
    who = ", then ".join(f"{by}, {plural(count, 'process')}" for by, count in [*ran, (of.by, of.processes)])
    speed = f"{_rate(of.written / of.wall_s)} examples/s"
    sizes = f"{_megabytes(of.bytes_in)} in, {_megabytes(of.bytes_out)} out"
    return f"{of.wall_s:.1f} s, {of.cpu_s:.1f} s of processor time ({who}, their start included): {speed}, {sizes}"


def _each_took(of: Preparation) -> list[str]:
    """What each of several ways took, and which took the least. Of turns that overlap it is not said which did."""
    costs = {way: sorted(cost.wall_s) for way, cost in of.ways.items()}
    turns, least = len(costs[of.by]), costs.pop(of.by)
    lines = [
        f"{way}: {statistics.median(cost.wall_s):.1f} s [{min(cost.wall_s):.1f} – {max(cost.wall_s):.1f}], "
        f"{statistics.median(cost.cpu_s):.1f} s of processor time"
        for way, cost in of.ways.items()
    ]
    alike = [way for way, taken in costs.items() if taken[0] <= least[-1]]
    told = f"no difference was seen between {of.by} and {' and '.join(alike)}" if alike else f"it is {of.by}"
    how = f"{plural(of.processes, 'process')}, their start included, {turns} turns each, the same bytes"
    return [*lines, f"which takes the least time: {told} ({how})"]


def _pays(of: Preparation, examples: int) -> list[str]:
    """How fast source and files are read, and after how many passes writing them has paid; nothing where nobody has
    measured it. Of turns that overlap it is not said which is faster."""
    if of.source_read is None or of.files_read is None:
        return []
    source, files = of.source_read.examples_per_s, of.files_read.examples_per_s
    how = f"the first {plural(of.source_read.examples, 'example')}, {len(source)} times each in turns, by one process"
    each = [_rate(statistics.median(speeds)) for speeds in (source, files)]
    read = [f"reading: source {each[0]} examples/s, files {each[1]} ({how})"]
    if max(source) >= min(files) and max(files) >= min(source):
        return [*read, "no difference was seen: preparing is not worth it for the speed of reading from this disk"]
    if max(files) < min(source):
        return [*read, "the source is read faster: preparing is not worth it for the speed of reading from this disk"]
    saved = examples / statistics.median(source) - examples / statistics.median(files)
    if of.written < examples or not of.wall_s:
        return [*read, f"a pass over all examples takes {saved:.1f} s less from the files"]
    passes = plural(math.ceil(of.wall_s / saved), "pass")
    return [*read, f"where reading is the limit, the time to prepare is won back after {passes}"]


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def _rate(a_second: float) -> str:
    """Whole ones; of slow sources `0.17`."""
    return f"{a_second:,.0f}" if a_second >= 10 else significant(a_second, 2)
