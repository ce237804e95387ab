"""A `none` cell against the same step in a hand-written loop, both taking turns in one run.

Promise: within 2 %.
"""

import math
import random
import subprocess
import sys
from pathlib import Path

from common import cell, data_folder, live, prepared_zygote, print_ratio

from harness.run.process.zygote import Zygote

GOAL = 0.02
BLOCKS = 8
ROUNDS = 20
WARMUP_ROUNDS = 5
BATCH_SIZE = 128


def main() -> None:
    """Measure and print; an argument sets the number of blocks."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    with prepared_zygote() as zygote:
        ratios = [_block(zygote, block) for block in range(blocks)]
    print_ratio(ratios, GOAL)


def _block(zygote: Zygote, block: int) -> float:
    """One fresh process of each; the log ratio of their step times over the rounds after warm-up."""
    trial = live(zygote, cell("none", 1, BATCH_SIZE), block, 0)
    bare = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("bare_script.py")), str(data_folder()), str(BATCH_SIZE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert bare.stdout is not None
    assert bare.stdin is not None
    assert bare.stdout.readline() == "ready\n", "the hand-written script did not start"
    trial.start()
    trial.set_up()
    trial.take_turn(0)
    steps = trial.taken.windows[0].steps
    seconds = {"harness": 0.0, "bare": 0.0}
    trial.measure_from(1)
    order = random.Random(block)
    for number in range(1, ROUNDS + WARMUP_ROUNDS + 1):
        for side in order.sample(sorted(seconds), 2):
            if side == "harness":
                trial.take_turn(number)
                taken = trial.taken.windows[-1].seconds
            else:
                bare.stdin.write(f"{steps}\n")
                bare.stdin.flush()
                taken = float(bare.stdout.readline())
            if number > WARMUP_ROUNDS:
                seconds[side] += taken
    trial.finish()
    assert trial.status == "ok", f"{trial.status}: {trial.reason}"
    bare.stdin.close()
    bare.wait()
    return math.log(seconds["harness"] / seconds["bare"])


if __name__ == "__main__":
    main()
