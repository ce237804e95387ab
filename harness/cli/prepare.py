"""`harness prepare`: raw examples as TFRecord files, and what that took."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli._completion import several_of
from harness.cli._options import AsJson
from harness.errors import not_one_of
from harness.spec.entry import closed_list
from harness.spec.values import FileCompression, RunBy
from harness.visible import json_text

if TYPE_CHECKING:
    from harness.run.preparing.asked import FilesListener

VERB = "prepare"
HELP = (
    "Write the examples of a source of data as TFRecord files, which --data tfrecord:FOLDER reads, and say what that "
    "took and whether reading is faster afterwards. A call that was stopped goes on when it is given again."
)
EXAMPLES = (
    "Examples: harness prepare photographs:5000 prepared/photographs\n\n"
    "harness prepare folder:my_images prepared/my_images --shards 64 --compression gzip --processes 2\n\n"
    "harness prepare photographs:400 prepared/tried --with local,dask,beam"
)
WAYS, COMPRESSIONS = closed_list(RunBy), closed_list(FileCompression)
SourceName = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A source as --data of sweep takes it: photographs:NUMBER, tfds:NAME, folder:PATH for images as "
        "PATH/CLASS/*.jpg, your own as package.module:function.",
    ),
]
TargetFolder = Annotated[Path, typer.Argument(metavar="TARGET", help="The folder for the files.")]
ShardCount = Annotated[int | None, typer.Option("--shards", metavar="N", min=1, max=99_999, help="Files. Default: 16.")]
CompressionName = Annotated[
    str,
    typer.Option(
        "--compression", metavar="|".join(COMPRESSIONS), help="Of each file.", autocompletion=lambda: COMPRESSIONS
    ),
]
WayNames = Annotated[
    str,
    typer.Option(
        "--with",
        metavar=",".join(WAYS),
        help="Who runs the processes, all on this machine; the files are the same. Of several each writes all of them "
        "in turns, and what each costs is said.",
        autocompletion=several_of(lambda: WAYS),
    ),
]
ProcessCount = Annotated[
    int | None, typer.Option("--processes", metavar="N", min=1, max=4096, help="Default: one for each core.")
]
DataFolder = Annotated[
    str, typer.Option("--data-dir", metavar="DIR", help="Where sources keep what they download or make.")
]
MostSeconds = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", help="The most that a process may take for one example. Default: 120."
    ),
]
Quietly = Annotated[bool, typer.Option("--quiet", help="Say the end only.")]


def command(
    source: SourceName,
    target: TargetFolder,
    shards: ShardCount = None,
    compression: CompressionName = "none",
    by: WayNames = "local",
    processes: ProcessCount = None,
    data_dir: DataFolder = "",
    timeout: MostSeconds = None,
    quiet: Quietly = False,
    json_out: AsJson = False,
) -> int:
    """Run the verb."""
    from harness.arguments import path_of
    from harness.cli._preparing import end_lines
    from harness.environment import usable_cores
    from harness.run.preparing.asked import AskedFiles
    from harness.run.preparing.prepare import prepare
    from harness.run.preparing.ways import prepare_by_each
    from harness.run.request import data_dir_of
    from harness.spec import sweep_from

    target = path_of("target", str(target))
    ways: list[Any] = list(dict.fromkeys(way.strip() for way in by.split(",")))
    names = [("--with", way, WAYS) for way in ways]
    for flag, given, known in (*names, ("--compression", compression, COMPRESSIONS)):
        if given not in known:
            raise not_one_of(flag, given, known)
    # the window is the sweep's, and here of no meaning
    limit = {} if timeout is None else {"timeout": timeout, "window": min(0.1, timeout / 2)}
    of = sweep_from({"data_dir": data_dir} | limit, "prepare")
    how: dict[str, Any] = {"compression": compression, "by": ways[0], "processes": processes or usable_cores()}
    asked, told = (
        AskedFiles(source, target, data_dir_of(of), shards, timeout_s=of.timeout, **how),
        _listener(quiet or json_out),
    )
    if len(ways) > 1:
        features, new = prepare_by_each(asked, ways, told), True
    else:
        features, new = prepare(asked, told)
    if json_out:
        print(json_text({"path": str(target), **features.model_dump(mode="json")}), end="")
    else:
        print("\n".join(end_lines(target, features, new)))
    return 0


def _listener(quiet: bool) -> "FilesListener":
    from harness.cli._preparing import FileLines
    from harness.run.preparing.asked import FilesListener

    return FilesListener() if quiet else FileLines(sys.stderr)
