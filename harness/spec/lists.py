"""Values that have commas of their own, like `batch:2,model:2` or `rate=1gbit,delay=0.5ms`, in a list with commas."""

from collections.abc import Callable

from harness.errors import UsageError


def split_keyed(text: str, mark: str, refused: Callable[[str], UsageError]) -> list[str]:
    """The values in `text`, each a few parts of a key, `mark` and a size.

    Commas separate parts and values alike, so a key that repeats begins the next value; a part without `mark` is a
    value of its own, and a semicolon always ends one. The values are not checked. What `refused` makes of the reason
    is raised where nothing stands between two separators.
    """
    values: list[str] = []
    for stretch in text.split(";"):
        taken: set[str] | None = None
        for part in (part.strip() for part in stretch.split(",")):
            if not part:
                raise refused("expected a value between two separators")
            key, marked, _ = part.partition(mark)
            key = key.strip().lower()
            if not marked or taken is None or key in taken:
                values.append(part)
                taken = {key} if marked else None
            else:
                values[-1] += f",{part}"
                taken.add(key)
    return values
