"""Imported by the process that Dask's are forks of, which then has what each of them needs to write files."""

import os
from typing import cast

from harness.protocol.preparing import PrepareOrder, Preparer
from harness.trial.engines import DEFAULT, engine_of
from harness.trial.parent import die_with_parent

FOR = "HARNESS_FORKS_FOR"
"""The variable with the id of the process that starts such a one; for nobody else does importing this do anything."""


def be_ready(parent: int) -> None:
    """Import what an order needs, and start nothing of it. Who ends meanwhile leaves nobody who goes on importing."""
    die_with_parent(parent)
    order = PrepareOrder(number=0, do="import", source="", data_dir="", scratch="")
    cast(Preparer, engine_of(DEFAULT)).prepare_files(order)


if FOR in os.environ:
    be_ready(int(os.environ.pop(FOR)))
