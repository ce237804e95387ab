"""`harness worker`: let a sweep elsewhere start its processes on this host."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli._streams import silence
from harness.errors import StorageError, UsageError

VERB = "worker"
HELP = "Join a sweep that runs with --launcher attach, slurm or ray, and run its processes on this host."
EXAMPLES = "Example: HARNESS_TOKEN=… harness worker --connect 10.0.0.1:7000   (the sweep prints the whole command)"


def command(
    connect: Annotated[str, typer.Option("--connect", help="HOST:PORT that the sweep has printed.")],
    token: Annotated[
        str | None,
        typer.Option(
            "--token", help="The run's token. Other users of this host can read it; HARNESS_TOKEN they cannot."
        ),
    ] = None,
    token_file: Annotated[Path | None, typer.Option("--token-file", help="A file that holds the token.")] = None,
    address: Annotated[
        str,
        typer.Option("--address", help="What other hosts reach this one at, where that is not where it connects from."),
    ] = "",
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Prepared data sets on this host, where not as the sweep says.")
    ] = None,
    wait: Annotated[float, typer.Option("--wait", min=0.0, help="Seconds to try to connect.")] = 60.0,
    stay: Annotated[bool, typer.Option("--stay", help="Wait for the next sweep when one is over.")] = False,
    engine_python: Annotated[
        str, typer.Option("--engine-python", help="Interpreters of engines here, NAME=PATH, where not as installed.")
    ] = "",
) -> int:
    """Run the verb."""
    from harness.run.launchers.agents.worker import WorkerSettings, work
    from harness.spec.address import host_alone, split_address

    host, port = split_address("connect", connect, needs_port=True)
    if address:
        address = host_alone("address", address)
    prepared = data_dir.absolute() if data_dir is not None else None
    settings = WorkerSettings(host, port or 0, _token(token, token_file), address, prepared, wait, stay, engine_python)
    work(settings, _say)
    return 0


def _token(given: str | None, file: Path | None) -> str:
    """The run's token; UsageError where there is none, or none of the length that sweeps give."""
    from harness.run.launchers.agents.handshake import LEAST_TOKEN
    from harness.run.launchers.agents.worker import token_from
    from harness.visible import plural

    try:
        found = token_from(given, file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"token_file: cannot read '{file}': {getattr(error, 'strerror', None) or error}") from None
    if found is None:
        raise UsageError(
            "token: there is none; give --token-file, --token or HARNESS_TOKEN, as the sweep has printed it"
        )
    if len(found) < LEAST_TOKEN:
        raise UsageError(f"token: it has {plural(len(found), 'character')}, expected at least {LEAST_TOKEN}")
    return found


def _say(text: str) -> None:
    """Tell the person; when nobody reads it any more (head, a closed terminal), no sweep must lose its host for it."""
    try:
        print(text, flush=True)
    except (OSError, StorageError):
        silence(sys.stdout)
