"""A cell of two workers against the same step in a hand-written two-process program, taking turns in one run.

Promise: within 3 %.
"""

import sys
from pathlib import Path

from common import BLOCKS, Program, beside, cell, data_folder, free_ports, live, prepared_zygote, print_ratio

from harness.run.process.zygote import Zygote

GOAL = 0.03
BATCH_SIZE = 128
WORKERS = 2


def main() -> None:
    """Measure and print; an argument sets the number of blocks."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    with prepared_zygote() as zygote:
        ratios = [_block(zygote, block) for block in range(blocks)]
    print_ratio(ratios, GOAL)


def _block(zygote: Zygote, block: int) -> float:
    measured = cell("multi_worker_mirrored", 1, BATCH_SIZE, workers=WORKERS, cross_device_op="ring")
    script, folder = str(Path(__file__).with_name("bare_cluster_script.py")), str(data_folder())
    addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(WORKERS))
    commands = [[sys.executable, script, folder, str(BATCH_SIZE), str(i), addresses] for i in range(WORKERS)]
    return beside(live(zygote, measured, block, 0), Program(commands), block)


if __name__ == "__main__":
    main()
