"""Another process in the place of a zygote's, which has imported the same packages."""

from collections.abc import Iterable

from harness.protocol.engine import IMPORT_S
from harness.run.process.zygote import Zygote, ZygoteError


def renew(zygotes: Iterable[Zygote]) -> None:
    """Another process in the place of each, imported side by side; no trial of theirs may be alive.

    Raises what `Zygote.start` does, and ZygoteError where what was imported then is not what there is now.
    """
    several = [(zygote, packages_of(zygote)) for zygote in zygotes]
    for zygote, _ in several:
        zygote.stop()
        zygote.launch()
    for zygote, before in several:
        zygote.start()
        if (now := packages_of(zygote)) != before:
            changed = [
                f"{name} {before.get(name)} became {new}" for name, new in now.items() if new != before.get(name)
            ]
            raise ZygoteError(f"packages changed while the run was under way ({', '.join(changed)}); begin a new run")


def packages_of(zygote: Zygote) -> dict[str, str]:
    """The versions that its own process tells: Python's and the packages'."""
    return {name: version for name, version in zygote.versions.items() if name != IMPORT_S}
