"""Data sets are made ready once in each place where trials read them, before anything is measured there."""

from harness.protocol.messages import Request
from harness.spec.axes import is_own_code
from harness.spec.shape import DataFiles

PREPARE_LIMIT_S = 3600.0
"""Preparing a data set may download it."""

DataKey = tuple[str | None, DataFiles | None, str]


def data_key(request: Request) -> DataKey:
    """What tells the data of one request from those of another in the same place: which, in which files of the
    harness's own, and in which folder."""
    return request.cell.data_set, request.cell.data_files, request.data_dir


def may_refuse_data(request: Request) -> bool:
    """Whether its model is one by name, which may not take what the user's own takes: where both want the same data,
    those are made ready for the other, and its own trials say why they cannot be trained on them."""
    return not is_own_code(str(request.cell.get("model")))


def preparation(request: Request) -> Request:
    """The request that makes the data of `request` ready, with nothing planted meanwhile."""
    return request.model_copy(update={"task": "prepare", "plant": None})


def preparation_limit_s(request: Request) -> float:
    """How long making the data of `request` ready may take. The user's own that no file is written of are imported and
    no more, for which a trial's `timeout` has to be enough, a download at import included."""
    timeout_s = 2 * request.others_limit_s
    only_imported = is_own_code(request.cell.data_set or "") and request.cell.data_files is None
    return timeout_s if only_imported else max(timeout_s, PREPARE_LIMIT_S)


def unavailable(request: Request, reason: str | None, host: str | None = None) -> str:
    """Why what wants the data of `request` cannot run, in one line, whoever says it."""
    where = "" if host is None else f" on {host}"
    files = request.cell.data_files
    return f"data '{request.cell.data_set}'{f' in {files.words}' if files else ''} is not available{where}: {reason}"
