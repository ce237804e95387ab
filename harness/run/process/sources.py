"""Source that trials import anew, and that somebody may edit while a run is under way."""

import contextlib
import functools
import hashlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.registry import is_script, script_of
from harness.run.process.startup import PACKAGE
from harness.spec.work import Cell

OURS = "the harness"

_Stamp = tuple[Path, int, int]
"""A file, when it was written, and how many bytes it has."""


class Sources:
    """This harness's own modules, and those of the user's own code that `cells` name, as they are now."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._places = {OURS: PACKAGE}
        for name in dict.fromkeys(name for cell in cells for name in cell.own_code.values()):
            own = script_of(name)[0] if is_script(name) else name.partition(":")[0]
            if (file := _file_of(own)) is not None:
                self._places[own] = file
        self._seen = {name: (_stamps(place), _digest(place)) for name, place in self._places.items()}

    def changed(self) -> list[str]:
        """What has been changed since, each once: the harness, a module or a script by its name."""
        found = []
        for name, (stamps, digest) in list(self._seen.items()):
            with contextlib.suppress(OSError):  # a folder that is being written anew: it is looked at again next time
                now = _stamps(self._places[name])
                # to read what nobody has written would cost more
                if now != stamps and digest_of(self._places[name]) != digest:
                    found.append(name)
                    del self._seen[name]
                elif now != stamps:
                    self._seen[name] = now, digest
        return found


@functools.cache
def source_digest() -> str:
    """A digest over this package's Python files: two checkouts can have one version number."""
    return digest_of(PACKAGE)


def digest_of(place: Path) -> str:
    """Twelve hexadecimal digits over a file, or the Python files of a folder."""
    digest = hashlib.sha256()
    for file in _files(place):
        with contextlib.suppress(OSError):
            digest.update(str(file.relative_to(place)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _digest(place: Path) -> str:
    return source_digest() if place == PACKAGE else digest_of(place)


def _stamps(place: Path) -> list[_Stamp]:
    found = []
    for file in _files(place):
        with contextlib.suppress(OSError):
            status = file.stat()
            found.append((file, status.st_mtime_ns, status.st_size))
    return found


def _files(place: Path) -> Sequence[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def _file_of(own: str) -> Path | None:
    """The file of a script or a module; None where it is not known."""
    if is_script(own):
        places = [Path(own)]
    else:
        module = Path(*own.split("."))
        ways = (module.with_suffix(".py"), module / "__init__.py")
        places = [Path(folder) / way for folder in (str(Path.cwd()), *sys.path) for way in ways]
    return next((place.absolute() for place in places if place.is_file()), None)
