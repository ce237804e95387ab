"""The two sides of a comparison: one cell each, in an environment each.

Sides may differ in any key of a spec, in environment variables that are read when TensorFlow is imported,
in the interpreter, and in the git revision of the user's own code. Those with the same environment share one
preloaded process; else each has its own.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from harness.errors import UsageError
from harness.record.manifest import ComparisonRecord, RunManifest, SideRecord
from harness.record.trial import Plant
from harness.run.kinds.arms import must_live_together
from harness.run.kinds.decision import OF_UNLIKE_STEPS, WINDOWING
from harness.run.kinds.one_cell import Given, check_turns, differing, given_for, one_cell, variable_words, words_of
from harness.run.process.engines import python_for, with_interpreters
from harness.run.process.interpreters import examine, our_interpreter
from harness.run.process.renewal import packages_of
from harness.run.process.startup import Startup
from harness.run.process.worktrees import Repository
from harness.run.process.zygote import Zygote
from harness.run.request import names_for
from harness.spec.axes import CELL_KEYS, TABLE
from harness.spec.bases import under_one_loop
from harness.spec.engines import only_engine_of
from harness.spec.sweep import Sweep
from harness.spec.work import Cell, must_be_of_one_quantity
from harness.trial.engines import engine_of, software_of
from harness.visible import HIDDEN, names_secret, quoted

Letter = Literal["a", "b"]
SIDE_NAMES: tuple[Letter, Letter] = ("a", "b")
Both = tuple[str | None, str | None]
SHORT = 7
"""Digits of a commit's hash that people are shown."""
SOURCES = "src"
"""Where many projects keep their packages, below the root of the repository."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: Letter
    label: str
    """What sets it apart from the other side, for people."""
    cell: Cell
    sweep: Sweep
    """Every setting; its axes have one value each."""
    settings: Mapping[str, str]
    """KEY=VALUE given for this side alone."""
    environment: Mapping[str, str]
    """Environment variables given for this side alone."""
    python: str | None = None
    """Absolute path of its interpreter; None is the one that runs the harness."""
    revision: str | None = None
    """The git revision of the user's code, as given; None is the working tree."""
    commit: str | None = None
    """The commit that the revision named when the side was made."""
    plant: Plant | None = None

    @property
    def engine(self) -> str:
        """The name of what trains on it."""
        return only_engine_of(self.sweep)


def sides_of(
    base: Mapping[str, Any],
    a: Sequence[str],
    b: Sequence[str],
    *,
    base_b: Mapping[str, Any] | None = None,
    pythons: Both = (None, None),
    revisions: Both = (None, None),
    windowed: bool = False,
) -> tuple[Side, Side]:
    """The two sides: the keys of `base`, with `a` and `b` (each `KEY=VALUE`, `env.NAME=VALUE`) laid over them.

    `base_b` is side b's own base where each side has a spec; `pythons` are interpreters and `revisions` git
    revisions, None for this interpreter and the working tree. Where they are to be `windowed`, keys of windows that
    nobody gave are those that suit the two cells (`decision.WINDOWING`). With nothing that differs, a side is
    compared with itself. UsageError when a side does not come to exactly one cell, the sides cannot take turns, an
    interpreter cannot run trials, or a revision is not there.
    """
    given = [given_for(name, texts) for name, texts in zip(SIDE_NAMES, (a, b), strict=True)]
    sweeps, cells = _asked((base, base if base_b is None else base_b), given, windowed)
    _refuse_what_engines_set(sweeps, given)
    words = _words(sweeps, cells, given)
    _refuse_what_is_alike([*words, *pythons, *revisions], [*a, *b])
    paths, titles = _interpreters(pythons, sweeps)
    commits, states = _commits(revisions, cells)
    labels = _labels(cells[0], *([*words[i], *titles[i], *states[i]] for i in range(2)))
    one, two = (
        Side(
            name=name,
            label=labels[i],
            cell=cells[i],
            sweep=sweeps[i],
            settings=given[i].settings,
            environment=given[i].environment,
            python=paths[i],
            revision=revisions[i],
            commit=commits[i],
        )
        for i, name in enumerate(SIDE_NAMES)
    )
    return one, two


def _labels(cell: Cell, words_a: Sequence[str], words_b: Sequence[str]) -> tuple[str, str]:
    """What each side is called, by what sets it apart; `cell` is a's."""
    a, b = ", ".join(words_a), ", ".join(words_b)
    return a or cell.label, "the same as a" if a == b else b


def _asked(
    bases: tuple[Mapping[str, Any], Mapping[str, Any]], given: Sequence[Given], windowed: bool
) -> tuple[tuple[Sweep, Sweep], tuple[Cell, Cell]]:
    """Every setting and the one cell of each side. UsageError where they cannot take turns."""

    def both(least: Mapping[str, Any]) -> list[tuple[Sweep, Cell]]:
        others = reversed(SIDE_NAMES) if bases[0] is bases[1] else ("", "")
        each = zip(SIDE_NAMES, bases, given, others, strict=True)
        return [one_cell(name, {**least, **keys}, own.settings, other) for name, keys, own, other in each]

    a, b = both(WINDOWING if windowed else {})
    if windowed and a[1].work.amount != b[1].work.amount:
        a, b = both(OF_UNLIKE_STEPS)
    must_be_of_one_quantity("--a, --b", (a[1], b[1]))
    check_turns(a[0], b[0])
    for sweep, cell in (a, b):
        must_live_together([cell], only_engine_of(sweep))
    # whatever else sets the two apart, a loop that makes no difference does not
    measured = under_one_loop(((cell, names_for(cell, sweep)) for sweep, cell in (a, b)), alike=lambda _: None)
    return (a[0], b[0]), (measured[a[1]], measured[b[1]])


def _refuse_what_engines_set(sweeps: Sequence[Sweep], given: Sequence[Given]) -> None:
    """UsageError for a variable of one side that its engine sets otherwise: both sides would be the same experiment."""
    for side, sweep, own in zip(SIDE_NAMES, sweeps, given, strict=True):
        engine = only_engine_of(sweep)
        for name, value in software_of(engine_of(engine)).sets.items():
            if (told := own.environment.get(name, value)) != value:
                raise UsageError(
                    f"--{side}: env.{name}: given {quoted(told)}, but engine '{engine}' trains with '{value}' alone; "
                    "leave it out"
                )


def _refuse_what_is_alike(differences: Sequence[object], given: Sequence[str]) -> None:
    if given and not any(differences):
        raise UsageError(
            f"--a, --b: nothing sets the sides apart ({', '.join(given)}); leave both out to compare a side with itself"
        )


def _words(sweeps: tuple[Sweep, Sweep], cells: tuple[Cell, Cell], given: Sequence[Given]) -> list[list[str]]:
    """What keys and variables set each side apart. A key of the cell does not, where both have the same one, and a key
    that is asked for by a name has that of the cell: an engine may have taken its own, which no spec says."""
    idle = type(cells[0]).model_fields.keys() if cells[0] == cells[1] else ()
    asked = {*differing(*sweeps), *given[0].settings, *given[1].settings}
    named = [sweep.model_copy(update=_names_of(cell)) for sweep, cell in zip(sweeps, cells, strict=True)]
    keys = [key for key in differing(*named) if key in asked and CELL_KEYS.get(key, key) not in idle]
    told = [words_of(sweep, keys) for sweep in named]
    if keys and told[0] == told[1]:  # what is not shown may be all that differs
        told[1] = [f"{words}, another value" for words in told[1]]
    return [told[i] + variable_words(given[i].environment, given[1 - i].environment, os.environ) for i in range(2)]


def _names_of(cell: Cell) -> dict[str, list[str]]:
    """The names that it has, by the keys of a spec that ask for them."""
    return {key: [cell.get(key)] for key, axis in TABLE.items() if axis.choices and cell.get(key) is not None}


def _interpreters(pythons: Both, sweeps: Sequence[Sweep]) -> tuple[list[str | None], list[list[str]]]:
    """The absolute paths of the interpreters that were given, and what each side's is called: where none was given,
    its engine's own."""
    if not any(pythons):
        return [None, None], [[], []]
    software = [software_of(engine_of(only_engine_of(sweep))) for sweep in sweeps]
    engines = with_interpreters(map(only_engine_of, sweeps))
    runs_in = [given or python_for(sweep, engines) for given, sweep in zip(pythons, sweeps, strict=True)]
    known = [
        our_interpreter(of) if path is None else examine(path, f"--python-{name}", of)
        for name, path, of in zip(SIDE_NAMES, runs_in, software, strict=True)
    ]
    paths = [None if given is None else found.path for given, found in zip(pythons, known, strict=True)]
    return paths, [[known[i].title(known[1 - i], Path.cwd(), software[i].titles)] for i in range(2)]


def _commits(revisions: Both, cells: Sequence[Cell]) -> tuple[list[str | None], list[list[str]]]:
    """The commits of the revisions that were given, and what each side's state of the code is called."""
    if not any(revisions):
        return [None, None], [[], []]
    commits: list[str | None] = []
    states: list[list[str]] = []
    repository = Repository.around(Path.cwd(), _rev_flag(revisions))
    for name, revision, cell in zip(SIDE_NAMES, revisions, cells, strict=True):
        if revision is None:
            commits.append(None)
            states.append(["the working tree" + (" with its changes" if repository.has_changes() else "")])
            continue
        flag = f"--rev-{name}"
        if not cell.own_code:
            raise UsageError(
                f"{flag}: a revision is of your own code, but the model '{cell.subject}' comes with the harness; "
                "give --model package.module:function"
            )
        commit = replace(repository, flag=flag).commit(revision)
        commits.append(commit)
        is_hash = len(revision) >= SHORT and commit.startswith(revision)
        states.append([commit[:SHORT] if is_hash else f"{revision} ({commit[:SHORT]})"])
    return commits, states


def _rev_flag(revisions: Both) -> str:
    return next(f"--rev-{name}" for name, revision in zip(SIDE_NAMES, revisions, strict=True) if revision is not None)


def same_commit(sides: Sequence[Side]) -> str | None:
    """What is to be known beforehand where both sides are one commit without changes; None where they are not."""
    a, b = sides
    given = a.revision or b.revision
    if given is None:
        return None
    if a.revision is None or b.revision is None:
        same = Repository.around(Path.cwd(), _rev_flag((a.revision, b.revision))).is_at(given)
    else:
        same = a.commit == b.commit
    alike = all(getattr(a, key) == getattr(b, key) for key in ("cell", "sweep", "environment", "python"))
    what = ": this is A against A, which only noise tells apart" if alike else ""
    return f"A and B are the same commit, {(a.commit or b.commit or '')[:SHORT]}{what}" if same else None


def side_remarks(sides: Sequence[Side]) -> list[str]:
    """What a reader of the verdict should know of the sides' revisions, as sentences; empty without revisions."""
    dated = {side.revision: side.commit for side in sides if side.revision is not None and side.commit is not None}
    if not dated:
        return []
    repository = Repository.around(Path.cwd(), _rev_flag((sides[0].revision, sides[1].revision)))
    found = [remark for revision, commit in dated.items() for remark in repository.remarks(commit, revision)]
    if (same := same_commit(sides)) is not None:
        found.append(same)
    if all(side.revision is not None for side in sides) and repository.has_changes():
        found.append("uncommitted changes of the working tree are on neither side")
    return found


def pythons_of(sides: Sequence[Side]) -> dict[str, str | None]:
    """The interpreter of each side, by its name: the side's own, else its engine's; None is the one of the harness.

    UsageError where an engine has none, or its sweep names one for an engine that no side has.
    """
    engines = with_interpreters(side.engine for side in sides)
    return {side.name: side.python or python_for(side.sweep, engines) for side in sides}


@contextlib.contextmanager
def side_zygotes(
    sides: Sequence[Side], pythons: Mapping[str, str | None] | None = None
) -> Iterator[Mapping[str, Zygote]]:
    """Preloaded processes by side name, one for each distinct environment, started side by side.

    `pythons` are the sides' interpreters by side name; None is `pythons_of` them.

    A revision has one of its own even where the other side's is the same commit: they are compared as two commits
    would be. The work trees of revisions live as long. Raises UsageError when git cannot make one, ZygoteError when
    an interpreter cannot import TensorFlow.
    """
    pythons = pythons_of(sides) if pythons is None else pythons
    with contextlib.ExitStack() as stack:
        repository = None
        if any(side.commit for side in sides):
            repository = Repository.around(Path.cwd(), _rev_flag((sides[0].revision, sides[1].revision)))
        trees: dict[str, Path] = {}
        zygotes: dict[object, Zygote] = {}
        by_side: dict[str, Zygote] = {}
        for side in sides:
            if repository is not None and side.commit is not None:
                trees[side.name] = stack.enter_context(repository.tree(side.commit))
            python = pythons[side.name]
            named = (side.python is not None, side.name in trees and side.name)
            key = (side.engine, python, *named, *sorted(side.environment.items()))
            if key not in zygotes:
                zygotes[key] = stack.enter_context(contextlib.closing(_zygote(side, python, repository, trees)))
                zygotes[key].launch()
            by_side[side.name] = zygotes[key]
        for zygote in zygotes.values():
            zygote.start()
        yield by_side


def _zygote(side: Side, another: str | None, repository: Repository | None, trees: Mapping[str, Path]) -> Zygote:
    """Of the interpreter `another`, or of ours where that is None."""
    python = another or sys.executable
    if repository is None:
        # Ours is started as for a sweep; for another, our packages must not be found beside this harness.
        path = None if another is None else [Path.cwd()]
        return Zygote(Startup(side.environment, python, path=path, engine=side.engine, of_side=side.python is not None))
    if side.commit is None:
        here = repository.root
        return Zygote(Startup(side.environment, python, path=_places(here, repository.below), engine=side.engine))
    return revision_zygote(repository, trees[side.name], python, side.environment, side.engine)


def revision_zygote(
    repository: Repository, tree: Path, python: str, environment: Mapping[str, str], engine: str
) -> Zygote:
    """One that has the user's code from `tree`, a work tree, and none from the working tree of `repository`."""
    named = [Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    moved = [tree / entry.relative_to(repository.root) for entry in named if entry.is_relative_to(repository.root)]
    path = list(dict.fromkeys([*_places(tree, repository.below), *moved]))
    folder = tree / repository.below
    return Zygote(Startup(environment, python, folder, path, not_from=repository.root, engine=engine))


def _places(root: Path, below: Path) -> list[Path]:
    """Where a project's modules are looked for, first the working folder, as without the harness."""
    return list(dict.fromkeys([root / below, root, root / SOURCES]))


def side_records(sides: Sequence[Side]) -> list[SideRecord]:
    """What the manifest keeps of the sides; `with_versions` adds those of TensorFlow once each side's process tells."""
    return [
        SideRecord(
            name=side.name,
            label=side.label,
            cell_id=side.cell.cell_id,
            settings=dict(side.settings),
            python=side.python,
            revision=side.revision,
            commit=side.commit,
            environment={name: HIDDEN if names_secret(name) else value for name, value in side.environment.items()},
            sweep=side.sweep,
        )
        for side in sides
    ]


def with_versions(manifest: RunManifest, zygotes: Mapping[str, Zygote]) -> RunManifest:
    """The manifest with the TensorFlow, Keras and Python that each side's own process tells.

    UsageError where a side of a run that is gone on with has another one by now.
    """
    record = manifest.part(ComparisonRecord)
    sides = []
    for side in record.sides:
        now = packages_of(zygotes[side.name])
        for name, then in side.versions.items():
            if now.get(name) != then:
                raise UsageError(
                    f"--resume: side {side.name} has {name} {now.get(name)} by now, and had {then} when the run was "
                    "begun; begin a new run"
                )
        sides.append(side.model_copy(update={"versions": side.versions or now}))
    return manifest.model_copy(update={"comparison": record.model_copy(update={"sides": sides})})


def sides_of_record(manifest: RunManifest) -> tuple[Side, Side]:
    """The sides of an `ab` run, to go on with it: the same interpreters, and commits whatever their names mean now.

    UsageError when the run compares nothing, or when an interpreter or a commit is no longer there.
    """
    cells = {cell.cell_id: cell for cell in manifest.cells}
    one, two = (_side_of(record, cells[record.cell_id]) for record in manifest.part(ComparisonRecord).sides)
    return one, two


def _side_of(record: SideRecord, cell: Cell) -> Side:
    needed = software_of(engine_of(only_engine_of(record.sweep)))
    python = examine(record.python, f"--python-{record.name}", needed).path if record.python is not None else None
    for name in (name for name, value in record.environment.items() if value == HIDDEN and names_secret(name)):
        raise UsageError(
            f"--resume: side {record.name} was given env.{name}, which may be a secret and is not kept; begin a new run"
        )
    if record.commit is not None:
        Repository.around(Path.cwd(), f"--rev-{record.name}").commit(record.commit)
    return Side(
        name=record.name,
        label=record.label,
        cell=cell,
        sweep=record.sweep,
        settings=record.settings,
        environment=record.environment,
        python=python,
        revision=record.revision,
        commit=record.commit,
    )
