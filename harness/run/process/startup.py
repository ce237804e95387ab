"""What a zygote's process is started with: interpreter, arguments, variables, and what each process has for itself."""

import itertools
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
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


class Startup:
    """How the processes of one zygote are started, one after the other.

    `scratch` is a folder of the zygote's own. `engine` names what is preloaded (`harness.trial.engines`). `environment`
    is laid over this process's own variables, `python` is the interpreter, `folder` the working folder. With `path`,
    modules are looked for in those folders first, and this harness comes from here whatever the interpreter has
    installed; without it the working folder comes first, as for `python -m`. `not_from` is a folder that modules must
    not come from (see `harness.trial.revision`). An interpreter is `of_side` where a side of a comparison was given it,
    whatever its engine has. Without `preloads` each trial imports the engine's framework itself.
    Raises OSError where `scratch` takes no folders.
    """

    def __init__(
        self,
        scratch: Path,
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
        folder: Path | None = None,
        path: Sequence[Path] | None = None,
        not_from: Path | None = None,
        engine: str = DEFAULT,
        preloads: bool = True,
        of_side: bool = False,
    ) -> None:
        self.engine = engine
        self.python = python
        self.folder = folder
        ours = path is None and python == sys.executable
        of_engine = engine != DEFAULT and path in (None, [Path.cwd()]) and not_from is None and not of_side
        self.plain = not environment and (ours or of_engine)
        """Whether what is forked is as this process is: no environment, revision or interpreter of its own, but for
        another engine's."""
        self._arguments = [engine, *([] if preloads else [IN_TRIALS]), *([] if not_from is None else [str(not_from)])]
        self._flags = [] if path is None else ["-P"]  # else `-m` would put the working folder before our own package
        # Trials leave by os._exit: what AutoGraph writes for each would stay in the system's own folder.
        temporary = scratch / "tmp"
        temporary.mkdir()
        self._environment = {
            "TF_CPP_MIN_LOG_LEVEL": "2",
            **(of_nvidia(scratch) if NVIDIA.exists() else {}),
            **inherited(python),
            "TMPDIR": str(temporary),
            **(environment or {}),
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
        return [self.python, *self._flags, *module, *self._arguments]

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
