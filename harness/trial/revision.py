"""The modules of one git revision, and of no other state of the same repository.

A work tree of the revision comes first on the path, so what it holds is found there, even when the
package is installed from the working tree (`pip install -e`). What it does not hold must not be taken from
the working tree instead: the trial would measure a mixture that never existed.
"""

import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def keep_out(root: str) -> None:
    """From now on import nothing from below `root`, but for what is installed there or on PYTHONPATH."""
    here = _Below(root)
    sys.path[:] = [entry for entry in sys.path if not here.holds(entry)]
    sys.meta_path.insert(0, _RevisionFinder(here))


class _Below:
    """What lies below a folder, except for installed packages (`.venv` in the repository) and PYTHONPATH."""

    def __init__(self, root: str) -> None:
        installed = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
        wanted = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        self._root = os.path.realpath(root)
        self._allowed = [
            os.path.realpath(entry)
            for entry in (*installed, *site.getsitepackages(), site.getusersitepackages(), *wanted)
        ]

    def holds(self, path: str) -> bool:
        """Whether `path` is one that nothing may come from."""
        real = os.path.realpath(path)
        return _is_in(real, self._root) and not any(_is_in(real, allowed) for allowed in self._allowed)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


class _RevisionFinder:
    """Asks the other finders and refuses what they found in the wrong place.

    An editable install adds a finder of its own, which a path that is in order does not stop.
    """

    def __init__(self, below: _Below) -> None:
        self._below = below

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec. ModuleNotFoundError, with the reason, for one that only the working tree has."""
        if path is not None:  # a part of a package, which was looked at itself
            return None
        refused = None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            found = finder.find_spec(name, path, target)
            if found is None:
                continue
            refused = next((place for place in _places(found) if self._below.holds(place)), None)
            if refused is None:
                return found
        if refused is not None:
            raise ModuleNotFoundError(f"'{name}' is in the working tree but not in this revision", name=name)
        return None


def _places(spec: ModuleSpec) -> list[str]:
    """Files or folders that a module comes from."""
    return [spec.origin] if spec.has_location and spec.origin else list(spec.submodule_search_locations or [])
