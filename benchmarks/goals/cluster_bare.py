"""A cell of two workers against the same step in a hand-written two-process program, taking turns in one run.

Promise: within 3 %.
"""

import math
import random
import socket
import subprocess
import sys
from pathlib import Path

from common import cell, data_folder, live, prepared_zygote, print_ratio

from harness.run.process.zygote import Zygote

GOAL = 0.03
BLOCKS = 8
ROUNDS = 20
WARMUP_ROUNDS = 5
BATCH_SIZE = 128
WORKERS = 2


def main() -> None:
    """Measure and print; an argument sets the number of blocks."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    with prepared_zygote() as zygote:
        ratios = [_block(zygote, block) for block in range(blocks)]
    print_ratio(ratios, GOAL)


class Bare:
    """The hand-written program's two processes."""

    def __init__(self) -> None:
        script, folder = str(Path(__file__).with_name("bare_cluster_script.py")), data_folder()
        addresses = ",".join(f"127.0.0.1:{port}" for port in _free_ports(WORKERS))
        self._processes = [
            subprocess.Popen(
                [sys.executable, script, str(folder), str(BATCH_SIZE), str(index), addresses],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for index in range(WORKERS)
        ]
        assert self._answers() == ["ready"] * WORKERS, "the hand-written program did not start"

    def window(self, steps: int) -> float:
        """Seconds of so many steps, the slower worker's."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
        return max(map(float, self._answers()))

    def close(self) -> None:
        """End both at once: one that ends alone is a failure to the other."""
        for process in self._processes:
            process.kill()
            process.wait()

    def _answers(self) -> list[str]:
        return [process.stdout.readline().strip() for process in self._processes if process.stdout is not None]


def _block(zygote: Zygote, block: int) -> float:
    """Fresh processes of each; the log ratio of their step times over the rounds after warm-up."""
    trial = live(
        zygote, cell("multi_worker_mirrored", 1, BATCH_SIZE, workers=WORKERS, cross_device_op="ring"), block, 0
    )
    bare = Bare()
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
                taken = bare.window(steps)
            if number > WARMUP_ROUNDS:
                seconds[side] += taken
    trial.finish()
    assert trial.status == "ok", f"{trial.status}: {trial.reason}"
    bare.close()
    return math.log(seconds["harness"] / seconds["bare"])


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, as a hand-written program takes them."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(server.getsockname()[1]) for server in taken]
    for server in taken:
        server.close()
    return ports


if __name__ == "__main__":
    main()
