"""A check of the user's own, by `package.module:function`: of the state before and after an update."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.protocol.state import VariableState
from harness.trial.own_function import own_function

if TYPE_CHECKING:
    from harness.protocol.state import Array

Check = Callable[[Sequence[VariableState], Sequence[VariableState]], str | None]
"""The evidence that an update is wrong, from the state before it and after it; None where there is none."""
TEXT = 500
"""Characters of evidence that are kept."""


def own_check(path: str) -> Check | None:
    """The check at `path`, None where none is asked for. Raises UsageError when it cannot be loaded."""
    if not path:
        return None
    function = own_function("check", path, "the arrays before and after an update", 2)

    def ask(before: Sequence[VariableState], after: Sequence[VariableState]) -> str | None:
        try:
            answer = function(_by_name(before), _by_name(after))
        except Exception as error:  # noqa: BLE001  an assertion is a way to say what is wrong
            return f"'{path}' raised {type(error).__name__}: {error}"[:TEXT]
        if answer is not None and not isinstance(answer, str):
            raise UsageError(f"check: '{path}' returned {answer!r:.60}, expected None or, as text, what is wrong")
        return answer[:TEXT] if answer is not None else None

    return ask


def _by_name(state: Sequence[VariableState]) -> "Mapping[str, Array]":
    """Copies of the first replica's arrays: what a check does to them is nobody's loss."""
    return {variable.name: variable.copies[0].copy() for variable in state}
