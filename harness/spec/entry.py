"""What one entry of the table of keys says (`harness.spec.axes`), and what its fields mean."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from harness.spec.catalogue import StrategyTraits

KEEP: Any = object()
"""As `Axis.base`: the base case has the cell's own value."""
Registry = Literal["devices", "strategies", "cross_device_ops", "models", "data", "optimizers", "loops"]
InputStage = Literal["source", "decode", "cache", "shuffle", "batch"]
"""What an input pipeline is made of, in its order."""
Word = Callable[[Any], str]
"""What a name of the cell says of an axis; empty where it says nothing."""


def in_the_head(_: Any) -> str:
    """As `Axis.label`: every name begins with what is told of strategy, replicas and batch."""
    return ""


def unlabelled(_: Any) -> str:
    """As `Axis.label`: a cell's name does not say it; what holds several values of it says it besides."""
    return ""


@dataclass(frozen=True)
class Takers:
    """Strategies that an axis is of."""

    are: Callable[[StrategyTraits], bool]
    words: str
    """What the others lack, after `no strategy of this sweep`."""
    dropped: bool = True
    """Another strategy is measured with the axis at its default, instead of being left out with a reason."""


@dataclass(frozen=True)
class Spelling:
    """How several values of an axis stand in one text, where a value may have commas of its own."""

    split: Callable[[str], list[Any]]
    join: Callable[[Iterable[str]], str]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A key of a spec: a list of values that are asked for."""

    kind: Any
    """Type and limits of one value."""
    values: tuple[Any, ...]
    """What is asked for by a spec that does not say. Nothing leaves the choice to strategy and op."""
    help: str
    spelling: Spelling | None = None
    takers: Takers | None = None
    """Strategies that it is of; None is all."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One key of a cell. What is not said keeps cells that differ in the key apart wherever cells are grouped."""

    help: str
    """Of its flag; `{names}` stands for its values, where they are a registry's or a closed list."""
    asked: tuple[Any, ...] = ()
    """What a spec that does not say asks for; nothing leaves it to the strategy."""
    value: Any = None
    """Type and limits of one value in a spec, where they are narrower than a record's; None is the cell's own."""
    kinds: Mapping[str, Asked] = field(default_factory=dict)
    """Keys of a spec in whose place the cell has this one, as `KEY=VALUE`; none where a spec has the same key."""
    choices: Registry | None = None
    """The registry whose names are its values."""
    registry: tuple[str, str] | None = None
    """The folder whose names are its values, as of a setting, where they are of no catalogue."""
    own: tuple[str, str] = ("", "")
    """What a value beside the registry's looks like, in words and as a pattern: `tfds:NAME`, `tfds:\\w+`."""
    spelling: Spelling | None = None

    works: tuple[str, ...] = ()
    """Kinds of work, by tag, whose cells have it as trainings do (`harness.spec.work`)."""
    takers: Takers | None = None
    """Strategies that it is of; None is all."""
    stage: InputStage | None = None
    """Of an axis of the input, the first stage that its value changes: one that is cut off before has no use for it.
    None of those that are cut off has the default in its place."""
    base: Any = KEEP
    """What the base case of a cell has; KEEP is the cell's own value."""
    depth: int = 7
    """How deep in the product of the axes: cells of one value of an axis of little depth stand together."""
    rank: Callable[[Any], Any] = lambda value: value
    """Sorts its values."""

    later: bool = True
    """Cells of earlier runs do not have it: at its default it is left out of the identity."""
    competes: bool = False
    """Values are alternatives that do the same work, so that one ranking holds them; else each has one of its own."""
    apart: str = ""
    """Why each has a ranking of its own, where they do not compete."""
    told: bool = False
    """They compete, and names of rankings, panels and series say it at its default too, where labels say nothing."""
    takes_turns: bool | None = None
    """Cells that differ in it may be alive in one group; None is as they compete."""
    along_curve: bool = False
    """A scaling curve has points at several values."""
    on_curve: Callable[[Any], Any] | None = None
    """Of an axis along the curve: what of its value all points share."""
    idle: Callable[[Any], bool] | None = None
    """Cells of which it says nothing, such as a network's one process: they lie on the curve of every value."""
    in_program: bool = False
    """The traced program, or the global batch size beside it, shows it: with equal ones the experiment is the same."""
    compared_with: str = ""
    """The value that a comparison holds the others against where nobody names one; empty is the first of the run's."""
    side_by_side: bool = False
    """Its values are what the table of cross-device ops sets side by side."""
    one_update: str = ""
    """Why cells that differ in it alone make the same update of the same batches, so that one reference is that of all
    of them. Where nothing is said each has its own: one too many costs a trial seconds, one too few its proof."""
    no_lever: str = ""
    """Why nobody is advised to try another value of it where a part of the step binds (`harness.analysis.levers`)."""
    of_own_step: bool = False
    """A training step of a user's own has it too, such as a setting of the trial's process."""

    label: Word | None = None
    """What a cell's label says of it; None is the key and the value, and nothing at the default."""
    words: Word | None = None
    """The same in a sentence, or where an axis is `told`; None is the label's, or the value."""
    called: str = ""
    """What a sentence calls the key itself; empty is the key in words."""
    late: bool = True
    """Whether it is said after what is said of ops and servers."""
    series: bool = False
    """Names of series say it as KEY=VALUE although the label has it, as earlier versions did."""
    named: bool = True
    """A benchmark's name has it as KEY=VALUE where it is not as usual; else it has a place of its own there."""
    always: bool = False
    """A command to repeat a cell has it even at its default, which a later version may change."""

    tried: tuple[Any, Any]
    """Two values as a spec has them, by which tests see that it keeps cells apart and takes hold. Of which words its
    label is made is read from them, too (`harness.spec.naming.parts_of`)."""
    tried_with: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the cells that the two are tried in."""
    shown_by: tuple[str, ...]
    """Places in a trial's record of which one at least differs where the axis took hold."""
    lacking: str = ""
    """What a machine may lack for one of the two, so that a trial may be `unsupported`."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A key of a spec that is the run's: it is in no cell's identity."""

    help: str
    """Of its flag; `{names}` stands for the values of its registry."""
    registry: tuple[str, str] | None = None
    """The folder whose names are its values, and what they define there (`harness.registry.registered`)."""
    of_sides: str = ""
    """It says how a sweep repeats its cells: what says so where two sides are compared."""
    changes_timings: bool = False
    """Runs that differ in it may differ by it: a comparison of two runs says so."""
    devices: tuple[str, ...] = ()
    """Device kinds whose trials alone read it; nothing is all."""
    sets_rounds: bool = False
    """Sides that take turns must have the same."""
    repeated: bool = True
    """A command to repeat one trial has it."""


def entries(model: type[BaseModel]) -> dict[str, Axis]:
    """The axes among the fields of `model`, by key."""
    return {
        key: entry for key, field in model.model_fields.items() for entry in field.metadata if isinstance(entry, Axis)
    }


def settings(model: type[BaseModel]) -> dict[str, Setting]:
    """The settings among the fields of `model`, by key."""
    return {
        key: entry
        for key, field in model.model_fields.items()
        for entry in field.metadata
        if isinstance(entry, Setting)
    }


def closed_list(kind: Any) -> tuple[str, ...]:
    """The values of a type as a flag spells them; nothing where they are not a closed list."""
    if kind is bool:
        return ("true", "false")
    return tuple(str(value) for value in get_args(kind)) if get_origin(kind) is Literal else ()
