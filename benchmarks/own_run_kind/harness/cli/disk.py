"""`harness disk`: how long a durable write takes in the folder of results."""

import sys
from typing import Any

from harness.cli._flags import run_to_resume
from harness.cli._options import RESULTS, option, resume_option

VERB = "disk"
HELP = "Measure how long a durable write takes in the folder of results."
EXAMPLES = "Example: harness disk --writes 20"


def command(**given: Any) -> int:
    """Run the verb."""
    from harness.cli.show import tell
    from harness.record.reading import load_run
    from harness.run.kinds.disk import DiskLines, measure_disk
    from harness.run.resume import resume

    lines, earlier = DiskLines(), run_to_resume(given)
    if earlier is None:
        path = measure_disk(given["writes"] or 20, given["results"], ["harness", *sys.argv[1:]], lines)
    else:
        resume("disk", path := earlier, lines)
    tell(load_run(path), given["results"], given["json"])
    return 0


FLAGS = [
    option("writes", int | None, "How many writes; 20 unless given.", min=1),
    RESULTS,
    resume_option("Go on with a run that was stopped.", "disk"),
    option("json", bool, "Print one JSON object.", False),
]
