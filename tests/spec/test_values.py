"""Flags and TOML are two spellings of one thing."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.sweep import read_values
from harness.errors import UsageError
from harness.spec import Sweep, sweep_from

FLAGS = {
    "name": "night-run",
    "device": "virtual-cpu,gpu",
    "strategy": "none,mirrored",
    "replicas": "1,2,4",
    "workers": "1",
    "ps": "1,2",
    "partitioner": "fixed",
    "updates": "locked,keras",
    "network": "none,rate=1gbit,delay=0.5ms,rate=100mbit",
    "mesh": "batch:4,batch:2,model:2",
    "batch_size": "32, 64",
    "batch_scope": "per_replica,global",
    "cross_device_op": "auto,my.ops:ring",
    "num_packs": "0,2",
    "bytes_per_pack": "1024",
    "cycle_time": "5",
    "model": "mlp",
    "data": "digits,tfds:mnist",
    "precision": "mixed_bfloat16",
    "xla": "false,TRUE",
    "optimizer": "adam",
    "loop": "fit",
    "steps_per_execution": "10",
    "micro_batches": "4",
    "trials": "3",
    "seed": "7",
    "timeout": "12.5",
    "window": "1",
    "windows": "5",
    "max_warmup": "0",
    "half_width": "0.01",
    "max_trials": "9",
    "live_trials": "2",
    "intra_op_threads": "1",
    "prefetch": "0,4",
    "device_prefetch": "3",
    "cache": "file",
    "parallel_calls": "1",
    "interleave": "4",
    "shuffle_buffer": "64",
    "deterministic": "false",
    "data_service": "2",
    "shards": "8",
    "compression": "gzip",
    "autoshard": "file",
    "inter_op_threads": "8",
    "gpu_memory_mb": "512",
    "tpu": "grpc://10.0.0.2:8470",
    "engine": "mine:engine",
    "engine_python": "jax=/opt/my python",
    "launcher": "local",
    "isolate": "false",
    "hosts": "4",
    "listen": "10.0.0.1:7000",
    "join_timeout": "600",
    "slurm_args": "--partition=gpu --time=30",
    "data_dir": "/data/ü b",
    "trace": "true",
    "exclude": "strategy=mirrored replicas=2; model=gpt",
    "check": "mine:check",
}
STEP = {"step": "mine.train:make_step", "amount": "4096", "quantity": "tokens"}
"""A step of one's own has no axes, so its keys go with none of FLAGS that is an axis."""
COLLECTIVE = {"work": "collective", "collective": "all_reduce,broadcast", "size": "4,65536,16MiB"}
"""Collectives have few axes, too."""
PIPELINE = {"work": "pipeline", "cut": "source,decode", "cache": "none,file"}
"""So have input pipelines."""
TIME = {"time": "90"}
"""A limit on time goes with no half-width."""
TOML = """
name = "night-run"
device = ["virtual-cpu", "gpu"]
strategy = ["none", "mirrored"]
replicas = [1, 2, 4]
workers = 1
batch_size = [32, 64]
batch_scope = ["per_replica", "global"]
cross_device_op = ["auto", "my.ops:ring"]
num_packs = [0, 2]
bytes_per_pack = 1024
cycle_time = 5
model = "mlp"
data = ["digits", "tfds:mnist"]
precision = "mixed_bfloat16"
xla = [false, true]
optimizer = "adam"
loop = "fit"
steps_per_execution = 10
micro_batches = 4
trials = 3
seed = 7
timeout = 12.5
window = 1
windows = 5
max_warmup = 0
half_width = 0.01
max_trials = 9
live_trials = 2
intra_op_threads = 1
prefetch = [0, 4]
device_prefetch = 3
cache = "file"
parallel_calls = 1
interleave = 4
shuffle_buffer = 64
deterministic = false
data_service = 2
shards = 8
compression = "gzip"
autoshard = "file"
inter_op_threads = 8
gpu_memory_mb = 512
tpu = "grpc://10.0.0.2:8470"
engine = "mine:engine"
engine_python = "jax=/opt/my python"
launcher = "local"
hosts = 4
listen = "10.0.0.1:7000"
join_timeout = 600
slurm_args = "--partition=gpu --time=30"
ps = [1, 2]
partitioner = "fixed"
updates = ["locked", "keras"]
network = ["none", "rate=1gbit,delay=0.5ms", "rate=100mbit"]
isolate = false
mesh = ["batch:4", "model:2,batch:2"]
data_dir = "/data/ü b"
trace = true
exclude = "strategy=mirrored replicas=2; model=gpt"
check = "mine:check"
"""


def sweep_of_flags(flags: dict[str, str]) -> Sweep:
    return sweep_from(read_values(None, flags)[0])


def test_every_key_has_both_spellings_and_they_mean_the_same() -> None:
    every = FLAGS.keys() | STEP.keys() | COLLECTIVE.keys() | PIPELINE.keys() | TIME.keys()
    assert every == Sweep.model_fields.keys()
    assert sweep_of_flags(FLAGS) == sweep_from(tomllib.loads(TOML))
    assert sweep_of_flags(TIME) == sweep_from({"time": 90})
    assert sweep_of_flags(STEP) == sweep_from({**STEP, "amount": 4096})
    written = {"work": "collective", "collective": ["all_reduce", "broadcast"], "size": [4, "64KiB", 16777216]}
    assert sweep_of_flags(COLLECTIVE) == sweep_from(written)
    written = {"work": "pipeline", "cut": ["source", "decode"], "cache": ["none", "file"]}
    assert sweep_of_flags(PIPELINE) == sweep_from(written)


@given(st.sampled_from(sorted(FLAGS)), st.data())
def test_any_selection_of_keys_means_the_same_in_either_spelling(first: str, data: st.DataObject) -> None:
    chosen = {first, *data.draw(st.sets(st.sampled_from(sorted(FLAGS))))} | {"trials", "max_trials"}
    raw = tomllib.loads(TOML)
    assert sweep_of_flags({key: FLAGS[key] for key in chosen}) == sweep_from({key: raw[key] for key in chosen})


def test_flags_are_laid_over_a_spec(tmp_path: Path) -> None:
    spec = tmp_path / "s.toml"
    spec.write_text("replicas = [1, 2]\ntrials = 9\n")
    values, source = read_values(spec, {"trials": "2"})
    assert values == {"replicas": [1, 2], "trials": 2}
    assert source == f"{spec} and flags"


def test_without_a_spec_and_flags_the_default_sweep_is_meant() -> None:
    values, source = read_values(None, {})
    assert values["name"] == "default"
    assert source.endswith("default.toml")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"replicas": "1,,2"}, "replicas: given '', expected a whole number"),
        ({"replicas": ""}, "replicas: given '', expected a whole number"),
        ({"replicas": "two"}, "replicas: given 'two', expected a whole number"),
        ({"replicas": "1.0"}, "replicas: given '1.0', expected a whole number"),
        ({"timeout": "soon"}, "timeout: given 'soon', expected a number"),
        ({"timeout": "nan"}, "timeout: given nan, expected a finite number"),
        ({"timeout": "1e999"}, "timeout: given inf, expected a finite number"),
        ({"seed": "-1"}, "seed: given -1, expected greater than or equal to 0"),
        ({"network": "rate=1gb"}, "network: given 'rate=1gb', expected a number with kbit, mbit or gbit"),
        ({"network": "rate=1gbit,delay=1ms,rate=1000mbit,delay=1000us"}, "network: given ['rate=1gbit,delay=1ms', "),
        ({"xla": "perhaps"}, "xla: given 'perhaps', expected true or false"),
        ({"batch_scope": "globl"}, "batch_scope: given 'globl', expected 'per_replica' or 'global'; did you mean"),
    ],
)
def test_a_bad_flag_is_answered_with_its_key_what_was_given_and_what_is_expected(
    flags: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        sweep_of_flags(flags)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.dictionaries(st.sampled_from(sorted(FLAGS)), st.text(max_size=12), max_size=3))
def test_whatever_a_flag_holds_the_answer_is_a_sweep_or_one_line(flags: dict[str, Any]) -> None:
    said = ""
    try:
        sweep_of_flags(flags)
    except UsageError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1
