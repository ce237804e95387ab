"""What the pages of the documentation print."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from harness.spec.axes import is_own_code
from tests.cli.real import SMALL

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "results" / "README.md",
    ROOT / "results" / "validation" / "README.md",
    ROOT / "reports" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "launchers").glob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands(page: Path) -> Iterator[str]:
    """As `commands_of`, of a file."""
    yield from commands_of(page.read_text(encoding="utf-8"))


def commands_of(text: str) -> Iterator[str]:
    """The lines of a page's `console` and `sh` blocks, continued lines joined; comments left out."""
    for language, block in FENCE.findall(text):
        if language in ("console", "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                if line.strip() and not line.lstrip().startswith("#"):
                    yield line.strip().removeprefix("$ ")


BEFORE = re.compile(r"^(?:HARNESS_TOKEN=\S+|salloc(?: --\S+)*) (?=python -m harness )")
"""What may stand before a command of ours: a variable for it, or what gives it nodes."""
COMMANDS = list(dict.fromkeys(BEFORE.sub("", command) for page in PAGES for command in commands(page)))
HARNESS = [command for command in COMMANDS if command.startswith("python -m harness ")]
[OWN_TEXT] = [command for command in HARNESS if "--data benchmarks.own_text:examples" in command]
"""`tests/cli/test_real_own_training.py` runs it in both loops."""
[MADE_STEP, MARKED_SCRIPT] = sorted((one for one in HARNESS if " sweep --step " in one), key=lambda one: ".py" in one)
"""`tests/engines/tensorflow/test_own_step.py` runs them."""


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a Markdown page get."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


SHORT = [flag for flag in SMALL if not flag.startswith("--data")]
OF_STEP = ("--model", "--optimizer", "--batch-size")
"""What a command does not take that trains nothing of the harness's own."""
FEW = {"photographs": "photographs:16"}
OF_FEW = "--batch-size=2"
"""Before each window a pipeline makes some fifty batches that nobody times."""


def short(command: str) -> list[str]:
    """The words of a command behind `python -m harness`, and flags that it does not have for few and short windows, a
    small model and an optimizer without slots. It has few photographs, in small batches: each is decoded in each pass.
    """
    given = [FEW.get(word, word) for word in shlex.split(command)[3:]]
    without = OF_STEP if {"--step", "collective"} & {*given} else ("--optimizer",) if "pipeline" in given else ()
    without += ("--model",) if "pipeline" in given and any(map(is_own_code, given)) else ()  # such data need none
    once = ("--trials",) if given[0] == "ab" else ()
    sized = [OF_FEW if flag.startswith("--batch-size") and {*FEW.values()} & {*given} else flag for flag in SHORT]
    flags = [flag for flag in sized if flag.partition("=")[0] not in (*given, *without, *once)]
    if given[0] == "sweep" and not {"--work", "--step", "--intra-op-threads"} & {*given}:
        flags.append("--intra-op-threads=2")
    return [*given, *flags, *(["--max-blocks=2"] if once else [])]
