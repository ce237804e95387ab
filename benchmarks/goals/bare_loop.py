"""A `none` cell against the same step in a hand-written loop, both taking turns in one run.

Promise: within 2 %.
"""

import sys
from pathlib import Path

from common import BLOCKS, Program, beside, cell, data_folder, live, prepared_zygote, print_ratio

GOAL = 0.02
BATCH_SIZE = 128


def main() -> None:
    """Measure and print; an argument sets the number of blocks."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    script = str(Path(__file__).with_name("bare_script.py"))
    with prepared_zygote() as zygote:
        command = [sys.executable, script, str(data_folder()), str(BATCH_SIZE)]
        ratios = [
            beside(live(zygote, cell("none", 1, BATCH_SIZE), block, 0), Program([command]), block)
            for block in range(blocks)
        ]
    print_ratio(ratios, GOAL)


if __name__ == "__main__":
    main()
