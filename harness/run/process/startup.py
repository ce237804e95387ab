"""What a zygote's process is started with: interpreter, arguments, variables, and what each process has for itself."""

import itertools
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.record.trial import ZygoteRecord
from harness.run.process.interpreters import inherited
from harness.trial import nccl
from harness.trial.engines import DEFAULT
from harness.trial.zygote import IN_TRIALS

TOKEN_VARIABLE = "HARNESS_TOKEN"
"""What agents are admitted by: unlike a flag, other users of the host cannot read it. The user's own code must not."""
HASH_SEED, PADDING = "PYTHONHASHSEED", "HARNESS_PADDING"
PADDING_BYTES = 4096
"""A page, below which the size of the environment moves a program's stack (Mytkowicz et al. 2009)."""
PACKAGE = Path(__file__).resolve().parents[2]
"""This harness, which also trials in another interpreter run."""
NVIDIA = Path("/proc/driver/nvidia")
"""There where the kernel has NVIDIA's driver."""
_numbers = itertools.count(1)


def of_nvidia(scratch: Path) -> dict[str, str]:
    """Variables by which libraries on NVIDIA's cards say what they do, where a person has not set them.

    TensorFlow logs warnings, one of which is that a card's kernels are yet to be compiled (`harness.run.turns.live`),
    and NCCL how it was set up (`harness.trial.nccl`).
    """
    said = {"TF_CPP_MIN_LOG_LEVEL": "1"}
    if nccl.LEVEL not in os.environ:
        said |= {nccl.LEVEL: "INFO", nccl.FILE: str(scratch / "nccl-%p.log")}
    return said


@dataclass(frozen=True)
class Startup:
    """What the processes of a zygote are started with."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """Laid over this process's own variables."""
    python: str = sys.executable
    """The interpreter."""
    folder: Path | None = None
    """The working folder; None is this process's own."""
    path: Sequence[Path] | None = None
    """Folders in which modules are looked for first; this harness then comes from here, whatever the interpreter has
    installed. Without them the working folder comes first, as for `python -m`."""
    not_from: Path | None = None
    """A folder that modules must not come from (see `harness.trial.revision`)."""
    engine: str = DEFAULT
    """What is preloaded (`harness.trial.engines`)."""
    preloads: bool = True
    """Else each trial imports the engine's framework itself."""
    of_side: bool = False
    """Whether a side of a comparison was given the interpreter, whatever its engine has."""

    @property
    def plain(self) -> bool:
        """Whether what is forked is as this process is: no environment, revision or interpreter of its own, but for
        another engine's."""
        ours = self.path is None and self.python == sys.executable
        of_engine = self.engine != DEFAULT and self.path in (None, [Path.cwd()]) and self.not_from is None
        return not self.environment and (ours or (of_engine and not self.of_side))


class Starts:
    """How the processes of one zygote are started, one after the other, from `scratch`, a folder of the zygote's own.

    Raises OSError where that takes no folders.
    """

    def __init__(self, startup: Startup, scratch: Path) -> None:
        python, path, not_from = startup.python, startup.path, startup.not_from
        flags = [] if path is None else ["-P"]  # else `-m` would put the working folder before our own package
        self._interpreter = [python, *flags]
        in_trials = [] if startup.preloads else [IN_TRIALS]
        self._arguments = [startup.engine, *in_trials, *([] if not_from is None else [str(not_from)])]
        # Trials leave by os._exit: what AutoGraph writes for each would stay in the system's own folder.
        temporary = scratch / "tmp"
        temporary.mkdir()
        self._environment = {
            "TF_CPP_MIN_LOG_LEVEL": "2",
            **(of_nvidia(scratch) if NVIDIA.exists() else {}),
            **inherited(python),
            "TMPDIR": str(temporary),
            **startup.environment,
        }
        self._environment.pop(TOKEN_VARIABLE, None)
        if path is not None:
            alone = scratch / "path"
            alone.mkdir()
            (alone / "harness").symlink_to(PACKAGE)
            self._environment["PYTHONPATH"] = self._path([alone, *path], not_from)

    def _path(self, first: Sequence[Path], not_from: Path | None) -> str:
        """PYTHONPATH: `first`, with this package alone before all, then what was there before."""
        before = [Path(entry) for entry in self._environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
        kept = [entry for entry in before if not_from is None or not entry.resolve().is_relative_to(not_from)]
        return os.pathsep.join(str(entry) for entry in (*first, *kept))

    def command(self, control: int) -> list[str]:
        """The command line of a process that is given the socket `control` to be told by."""
        module = ["-m", "harness.trial.zygote", str(control), str(os.getpid())]
        return [*self._interpreter, *module, *self._arguments]

    def next_environment(self) -> tuple[dict[str, str], ZygoteRecord]:
        """The variables of another process, and what it has for itself.

        All its trials share its address layout, the size of its environment and its hash seed, which can make a step
        faster or slower. So each process has others, and says which; a hash seed that is given stays.
        """
        padding = secrets.randbelow(PADDING_BYTES)
        environment = {HASH_SEED: str(secrets.randbelow(2**32)), **self._environment, PADDING: "x" * padding}
        seed = environment[HASH_SEED]
        return environment, ZygoteRecord(
            number=next(_numbers), padding_bytes=padding, hash_seed=int(seed) if seed.isdecimal() else None
        )
