"""One process of the program that `engines.py` compares PyTorch's cells with: nothing of the harness in it.

Reads `K` from standard input, runs K training steps, prints their wall seconds; ends at end of file. What PyTorch's
tutorial on DistributedDataParallel has, on one random batch that stays in memory. Without an address it is one process.
"""

import os
import sys
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

batch_size, rank, world_size, port = (int(argument) for argument in sys.argv[1:5])
torch.set_num_threads(1)
torch.manual_seed(1)
model = nn.Sequential(
    nn.Conv2d(1, 32, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(1600, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
if world_size > 1:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    distributed.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_of = nn.CrossEntropyLoss()
x, y = torch.randn(batch_size, 1, 28, 28), torch.randint(10, (batch_size,))


def run(steps):
    start = time.perf_counter()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
    loss.item()
    return time.perf_counter() - start


run(20)
print("ready", flush=True)
for line in sys.stdin:
    print(repr(run(int(line))), flush=True)
os._exit(0)
