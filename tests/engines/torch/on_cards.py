"""What PyTorch's engine decides on GPUs, with `torch.cuda` showing cards that are not there.

`python -m tests.engines.torch.on_cards CASE…` runs cases in an interpreter with PyTorch. Where something is computed
the card is PyTorch's `meta` device: shapes without numbers, which lets a test see where each tensor lies.
"""

import contextlib
import functools
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import distributed, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from harness.engines.torch import ENGINE, devices, group
from harness.engines.torch.devices import Card, Processor, place_of
from harness.environment.gpu import not_found
from harness.errors import Unsupported
from harness.protocol.messages import Membership, Request
from harness.record.explain import BARRIER, EMPTY, FORWARD, FORWARD_BACKWARD, NO_UPDATE, REDUCTION
from harness.record.trial import Executed
from harness.spec.cell import TrainingCell
from harness.spec.collective import CollectiveCell

CASES: dict[str, Callable[[], None]] = {}
META = torch.device("meta")
SHAPE = {"device": "gpu", "strategy": "none", "replicas": 1, "cross_device_op": "auto", "engine": "torch"}
COPIES = ("copy_", "_to_copy")


def case(function: Callable[[], None]) -> Callable[[], None]:
    """One of CASES."""
    CASES[function.__name__] = function
    return function


def request(model: str = "mlp", member: Membership | None = None, **keys: Any) -> Request:
    """A trial of a small cell on a GPU."""
    work = {"model": model, "data": "synthetic", "optimizer": "adam", "loop": "ddp", "batch_scope": "per_replica"}
    cell = TrainingCell(**{**SHAPE, **work, "batch_size": 4, "global_batch_size": 4, **keys})
    return Request(cell=cell, seed=1, data_dir="", window_s=0.1, intra_op_threads=0, inter_op_threads=0, member=member)


def process(index: int) -> Membership:
    """One of two on a host."""
    return Membership(
        task="worker", index=index, cluster={"worker": ["127.0.0.1:1", "127.0.0.1:2"]}, first_device=index
    )


@contextlib.contextmanager
def cards(count: int, capability: tuple[int, int] = (9, 0)) -> Iterator[mock.Mock]:
    """So many, and what was asked of `torch.cuda`."""
    asked = mock.Mock()
    asked.is_available.return_value, asked.device_count.return_value = count > 0, count
    asked.get_device_capability.return_value, asked.max_memory_allocated.return_value = capability, 1000
    names = ("is_available", "device_count", "set_device", "synchronize", "get_device_capability")
    names += ("max_memory_allocated", "reset_peak_memory_stats")
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(torch.cuda, name, getattr(asked, name)))
        yield asked


class Shapes(Card):
    """A card that computes nothing, and gives zeros where numbers are asked for."""

    def __init__(self, asked: Request) -> None:
        super().__init__(asked)
        self.device = META


@contextlib.contextmanager
def without_numbers(card: type[Processor] = Shapes) -> Iterator[mock.Mock]:
    """Trials on `gpu` are on such a card."""

    def on_host(tensor: Any) -> Any:
        return torch.zeros(tensor.shape, dtype=tensor.dtype) if tensor.is_meta else tensor

    with (
        cards(1) as asked,
        mock.patch.dict(devices.PLACES, {"gpu": card}),
        mock.patch.object(torch.Tensor, "cpu", on_host),
        mock.patch.object(torch.Tensor, "__float__", lambda tensor: float(on_host(tensor).sum().item())),
        mock.patch.object(torch.Tensor, "pin_memory", lambda tensor: tensor),
    ):
        yield asked


class OnOneDevice(TorchDispatchMode):
    """While entered, every op but a copy has its tensors on one device; numbers of the host go anywhere."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor) and one.ndim]
        name = func.overloadpacket.__name__
        assert name in COPIES or len({one.device.type for one in tensors}) < 2, f"{name} of several devices"
        return func(*args, **(kwargs or {}))


def trainer(model: str = "mlp", **keys: Any) -> Any:
    from harness.engines.torch.trainer import TorchTrainer

    return TorchTrainer(request(model, **keys))


def refused(begin: Callable[[], Any], how: type[Exception] = Unsupported) -> str:
    try:
        begin()
    except how as error:
        return str(error)
    raise ValueError("it was not refused")


@case
def each_process_of_a_host_takes_the_card_of_its_number() -> None:
    for member, index in ((None, 0), (process(0), 0), (process(1), 1)):
        with cards(2) as asked:
            card = place_of(request(member=member))
        assert card.device == torch.device("cuda", index)
        asked.set_device.assert_called_once_with(card.device)
        found = card.resources
        assert (found.logical_devices, found.physical_devices, found.shared) == ([f"cuda:{index}"], 2, False)


@case
def the_card_is_named_as_the_facts_of_the_machine_name_it() -> None:
    with cards(2), mock.patch.object(devices, "card_at", {1: "ab12"}.get):
        assert place_of(request(member=process(1))).resources.gpus == ["ab12"]
        assert place_of(request(member=process(0))).resources.gpus == []


@case
def more_processes_than_cards_are_refused() -> None:
    with cards(1):
        reason = refused(lambda: place_of(request(member=process(1))))
    assert reason == ("2 processes on this host need a GPU each, since NCCL refuses two on one, and PyTorch finds 1")


@case
def a_build_for_processors_says_which_one_has_cuda() -> None:
    with cards(0), mock.patch.object(torch.version, "cuda", None):
        reason = refused(lambda: place_of(request()))
    assert reason == (
        f"PyTorch {torch.__version__} finds no GPU: it is a build for processors; the one with CUDA is in pip's "
        "default index: python -m harness engine install torch"
    )


@case
def a_build_with_cuda_that_finds_no_card_says_what_may_hide_it() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "dev").mkdir()
        Path(folder, "dev", "nvidia0").touch()
        of_folder = functools.partial(not_found, root=Path(folder))
        with (
            cards(0),
            mock.patch.object(torch.version, "cuda", "13.0"),
            mock.patch.object(devices, "not_found", of_folder),
        ):
            reason = refused(lambda: place_of(request()))
    assert reason == (
        f"PyTorch {torch.__version__} finds no GPU, though the machine shows /dev/nvidia0: the driver is older than "
        "a build for CUDA 13.0 wants, or CUDA_VISIBLE_DEVICES hides them"
    )


@case
def gradients_on_cards_go_by_nccl_and_numbers_of_the_host_by_gloo() -> None:
    joined = mock.Mock()
    with (
        cards(2),
        mock.patch.object(group, "meet", return_value=None),
        mock.patch.object(distributed, "TCPStore"),
        mock.patch.object(distributed, "init_process_group", joined),
    ):
        group.set_up(request(member=process(1)))
        on_card = joined.call_args.kwargs
        group.set_up(request(member=process(1), device="virtual-cpu"))
        on_processor = joined.call_args.kwargs
    assert (on_card["backend"], on_card["device_id"]) == ("cpu:gloo,cuda:nccl", torch.device("cuda", 1))
    assert (on_card["rank"], on_card["world_size"]) == (1, 2)
    assert on_processor["backend"] == "gloo"
    assert "device_id" not in on_processor


@case
def the_record_names_what_carries_gradients_and_not_what_was_asked_for() -> None:
    distributed.init_process_group("cpu:gloo,cuda:gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        with cards(1):
            told = place_of(request()).told(Executed(operations={"all-reduce": 3}, packs=3, unlike={"call": "x"}))
    finally:
        distributed.destroy_process_group()
    assert (told.operations, told.packs, told.unlike) == ({"all-reduce[gloo]": 3}, 3, {"call": "x"})


@case
def on_the_processor_nothing_is_told_that_was_not_before() -> None:
    found = Executed(operations={"all-reduce": 3})
    processor = place_of(request(device="virtual-cpu"))
    assert processor.told(found, nn.Linear(1, 1)) is found
    assert (processor.peak_bytes(), processor.resources.logical_devices) == (None, ["cpu:0"])


@case
def a_record_has_the_threads_that_pytorch_has_where_some_were_asked_for() -> None:
    """Nobody sets them here."""
    for kind in ("virtual-cpu", "gpu"):
        of, has = request(device=kind), torch.get_num_threads()
        asked = of.model_copy(update={"intra_op_threads": has + 1})
        with cards(1):
            assert [place_of(each).resources.intra_op_threads for each in (of, asked)] == [0, has]


@case
def float32_is_tf32_where_the_card_has_it_and_a_layer_is_computed_in_it() -> None:
    plain, convolves = nn.Linear(1, 1), nn.Sequential(nn.Conv2d(1, 1, 1), nn.Linear(1, 1))

    def found(capability: tuple[int, int] = (8, 0)) -> list[str]:
        with cards(1, capability):
            return [place_of(request()).arithmetic(module) for module in (plain, convolves)]

    assert found() == ["float32", "tf32"]
    assert found((7, 5)) == ["float32", "float32"]
    with mock.patch.dict(os.environ, NVIDIA_TF32_OVERRIDE="0"):
        assert found() == ["float32", "float32"]
    with mock.patch.object(torch.version, "hip", "6.4"):
        assert found((9, 4)) == ["float32", "float32"], "AMD's cards have other numbers"
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        assert found() == ["tf32", "tf32"]
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


@case
def the_record_and_the_gate_know_the_arithmetic() -> None:
    for model, arithmetic in (("mlp", "float32"), ("mnist_cnn", "tf32")):
        with without_numbers():
            trained = trainer(model)
            executed, reference = trained.executed(), trained._single
        assert (executed.arithmetic, reference._arithmetic) == (arithmetic, arithmetic)
        assert executed.unlike["arithmetic"] == "TF32 in convolutions alone"
    halves = {"strategy": "data_parallel", "loop": "ddp_hook", "cross_device_op": "fp16_compress"}
    settles = mock.patch("harness.engines.torch.loops.base.Averaging.settle")
    with without_numbers(), mock.patch("torch.nn.parallel.DistributedDataParallel"), settles:
        assert trainer(**halves)._single._arithmetic == "mixed_float16"


@case
def all_that_a_step_computes_with_lies_on_the_card() -> None:
    for model in ("mlp", "mnist_cnn", "resnet20", "transformer"):
        with without_numbers(), OnOneDevice():
            trained = trainer(model)
            x, y = trained._placed(trained._data.gate[0])
            loss = trained._step(x, y)
            trained._alone()
        state = [
            value for of in trained._counted.optimizer.state.values() for key, value in of.items() if key != "step"
        ]
        weights = list(trained._module.parameters())
        everything = [x, y, loss, *weights, *(weight.grad for weight in weights), *trained._module.buffers(), *state]
        assert {tensor.device.type for tensor in everything} == {"meta"}, model


@case
def a_batch_that_stays_on_the_host_would_be_seen() -> None:
    class Forgets(Shapes):
        def put(self, what: Any) -> Any:
            return super().put(what) if isinstance(what, nn.Module) else what

    with without_numbers(Forgets), OnOneDevice():
        trained = trainer("mlp")
        seen = refused(lambda: trained._step(*trained._placed(trained._data.gate[0])), AssertionError)
    assert seen.endswith(" of several devices")


@case
def known_gradients_and_every_instrument_are_of_the_card() -> None:
    with without_numbers(), OnOneDevice():
        trained = trainer("mlp")
        batch = trained._placed(trained._data.gate[0])
        [received] = trained.averaged([torch.ones(3).numpy()], 2.0)
        with mock.patch.object(distributed, "all_reduce") as sends:
            losses = [trained._without(name)(*batch) for name in (BARRIER, NO_UPDATE, FORWARD, FORWARD_BACKWARD)]
            trained._averaging.reductions = lambda: [64, 8]
            losses += [trained._without(name)(*batch) for name in (REDUCTION, EMPTY)]
    assert received.shape == (3,)
    assert {loss.device.type for loss in losses} == {"meta"}
    assert [call.args[0].shape for call in sends.call_args_list] == [(1,), (16,), (2,)]
    assert {call.args[0].device.type for call in sends.call_args_list} == {"meta"}


@case
def the_reference_computes_on_the_card_and_leaves_nothing_there() -> None:
    with without_numbers() as asked, OnOneDevice():
        trained = trainer("resnet20")
        initial = trained.state()
        seen = []
        kept = trained._device.put
        with mock.patch.object(trained._device, "put", lambda what: seen.append(kept(what)) or seen[-1]):
            trained.reference(initial)
        trained.forget_peak()
    assert {tensor.device.type for tensor in seen} == {"meta"}
    own = trained._single._module
    assert {tensor.device.type for tensor in (*own.parameters(), *own.buffers())} == {"cpu"}
    asked.reset_peak_memory_stats.assert_called_once_with(META)


@case
def windows_and_passes_end_when_the_card_has_done_them() -> None:
    with without_numbers() as asked:
        trained = trainer("mlp")
        trained._step(*trained._placed(trained._data.gate[0]))
        asked.synchronize.assert_not_called()
        trained.synchronise()
        asked.synchronize.assert_called_once_with(META)
        trained._alone()
        assert asked.synchronize.call_count == 2


@case
def a_collective_sends_from_the_card_and_is_waited_for_there() -> None:
    from harness.engines.torch.collectives import TorchSending

    cell = CollectiveCell(**{**SHAPE, "strategy": "data_parallel", "workers": 2}, collective="all_gather", size=64)
    asking = request(member=process(0)).model_copy(update={"cell": cell})
    with without_numbers() as asked, mock.patch.object(group, "begin"):
        sending = TorchSending(asking)
        sending.fill([torch.ones(sending.cell.elements).numpy()])
        assert {sending._sent.device, sending._received.device} == {META}
        sending.wait(sending._received)
        asked.synchronize.assert_called_once_with(META)
        assert [array.shape for array in sending.arrays(sending._received)] == [(2 * sending.cell.elements,)]
        with mock.patch.object(group, "mean", float):
            assert sending.peak_device_memory_bytes() == 2000, "of both processes"


@case
def a_checkpoint_is_read_onto_the_card_whatever_it_was_written_from() -> None:
    with without_numbers(), mock.patch.object(torch, "load", side_effect=InterruptedError) as load:
        with contextlib.suppress(InterruptedError):
            trainer("mlp")._read(Path())
        assert load.call_args.kwargs["map_location"] == META


@case
def memory_that_a_card_has_not_got_ends_as_that() -> None:
    said = [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79 GiB")
    ]
    said += [RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")]
    said += [RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory")]
    assert [ENGINE.classify(error)[0] for error in said] == ["out_of_memory"] * 3
    assert ENGINE.classify(RuntimeError("CUDA error: an illegal memory access was encountered"))[0] == "crashed"


@case
def two_processes_on_one_card_are_told_in_words() -> None:
    error = distributed.DistBackendError(
        "NCCL error in: ProcessGroupNCCL.cpp:94, invalid usage (run with NCCL_DEBUG=WARN for details)\n"
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000"
    )
    status, reason = ENGINE.classify(error)
    assert status == "unsupported"
    assert "the same GPU, which NCCL refuses" in reason


def preloading() -> None:
    """That a preloaded process has asked CUDA for nothing, so that its forks may start it. In a process of its own."""
    asked = mock.Mock(return_value=0)
    torch._C._cuda_getDeviceCount = torch._C._cuda_getCurrentRawStream = asked  # a build with CUDA to whoever looks
    with mock.patch.object(torch.cuda, "_lazy_init", asked), mock.patch.object(torch.cuda, "_device_count_nvml", asked):
        assert torch.cuda._is_compiled()
        ENGINE.preload()
        asked.assert_not_called()
        torch.cuda.is_available()
        asked.assert_called()


def main() -> None:
    """Run the functions that are named; print what each raised, or nothing, as JSON."""
    ran = {}
    for name in sys.argv[1:]:
        try:
            {**CASES, "preloading": preloading}[name]()
            ran[name] = ""
        except Exception:  # noqa: BLE001  whatever it is, a test shows it
            ran[name] = traceback.format_exc()
    print(json.dumps(ran))


if __name__ == "__main__":
    main()
