"""What is said about this machine, whichever it is."""

import json
import os
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import psutil
import pytest

from harness import environment
from harness.environment import hardware, settings, software
from tests.environment.machine import lay_out


def test_facts_are_flat_serialisable_and_say_what_matters() -> None:
    facts = environment.facts()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert all(isinstance(value, str | int | float | bool | None) for value in facts.values())
    for key in ("machine.id", "cpu.model", "cpu.usable_cores", "memory.total_bytes", "os.release", "python.version"):
        assert facts[key], key
    assert facts["package.numpy"]
    assert "gpu.count" in facts


def test_facts_are_the_same_machine_the_second_time() -> None:
    assert environment.difference(environment.facts(), environment.facts()) == []


def test_facts_name_neither_host_nor_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/home/somebody/cuda")
    facts = environment.facts()
    assert facts["env.XLA_FLAGS"] == "--xla_gpu_cuda_data_dir=~/cuda"
    assert os.uname().nodename not in [value for value in facts.values() if isinstance(value, str)]
    assert "somebody" not in json.dumps(facts)


def test_describing_imports_no_tensorflow() -> None:
    code = (
        "import sys; from harness import environment; environment.describe();"
        "print({'tensorflow', 'keras', 'harness.record'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_stolen_time_is_watched_for_the_whole_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([(0, 0), (5, 100)])
    monkeypatch.setattr(settings, "stolen_ticks", lambda: next(readings))
    started = time.monotonic()
    assert environment.facts()["cpu.steal_fraction"] == 0.05
    assert time.monotonic() - started >= settings.STEAL_INTERVAL_S


def test_stolen_time_reads_the_eighth_counter_and_leaves_guest_time_out(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {"proc/stat": "cpu  10 20 30 40 50 60 70 80 1000 2000\ncpu0 1 2 3\n"})
    assert settings.stolen_ticks(root) == (80, 360)
    assert settings.stolen_ticks(tmp_path / "absent") is None
    assert settings.steal_fraction(None, (1, 2)) is None
    assert settings.steal_fraction((1, 2), (1, 2)) is None


def test_settings_of_an_intel_workstation_are_read(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu"
    root = lay_out(
        tmp_path,
        {
            f"{cpu}/cpu0/cpufreq/scaling_governor": "powersave\n",
            f"{cpu}/cpu1/cpufreq/scaling_governor": "performance\n",
            f"{cpu}/cpu1/cpufreq/cpuinfo_max_freq": "4700000\n",
            f"{cpu}/intel_pstate/no_turbo": "0\n",
            f"{cpu}/smt/active": "1\n",
            "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "proc/swaps": "Filename Type Size Used Priority\n/dev/dm-1 partition 1000 300 -2\n/swap file 9 1 -3\n",
        },
    )
    facts = settings.facts(root)
    assert facts["cpu.governor"] == "performance, powersave"
    assert facts["cpu.max_mhz"] == 4700
    assert facts["cpu.turbo"] is True
    assert facts["cpu.smt"] is True
    assert facts["clock.source"] == "hpet"
    assert facts["memory.transparent_hugepages"] == "madvise"
    assert facts["memory.swap_used_bytes"] == 301 * 1024


def test_turbo_is_also_read_from_the_generic_switch_and_smt_from_the_processor_table(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "sys/devices/system/cpu/cpufreq/boost": "0\n",
            "proc/cpuinfo": "processor\t: 0\nsiblings\t: 8\ncpu cores\t: 4\n",
        },
    )
    assert settings.facts(root)["cpu.turbo"] is False
    assert settings.facts(root)["cpu.smt"] is True


def test_a_system_that_tells_nothing_gives_none_and_no_error(tmp_path: Path) -> None:
    told = settings.facts(tmp_path) | hardware.facts(tmp_path)
    for key in ("cpu.governor", "cpu.turbo", "cpu.smt", "clock.source", "cpu.hypervisor", "cpu.l3_bytes"):
        assert told[key] is None, key
    assert told["cpu.usable_cores"]


def test_caches_are_in_bytes_and_the_instruction_cache_is_not_taken_for_data(tmp_path: Path) -> None:
    cache = "sys/devices/system/cpu/cpu0/cache"
    files: dict[str, str] = {}
    for index, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M"), ("3", "Unified", "36864K")]
    ):
        files |= {
            f"{cache}/index{index}/{name}": value
            for name, value in {"level": level, "type": kind, "size": size}.items()
        }
    assert hardware.caches(lay_out(tmp_path, files)) == {
        "cpu.l1d_bytes": 48 * 2**10,
        "cpu.l2_bytes": 2 * 2**20,
        "cpu.l3_bytes": 36 * 2**20,
    }


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS names its processor by sysctl")
def test_an_arm_processor_is_named_by_its_part_numbers() -> None:
    assert "implementer 0x41 part 0xd4f" in str(
        hardware.processor_model({"CPU implementer": "0x41", "CPU part": "0xd4f"})
    )
    assert hardware.processor_model({"model name": "AMD EPYC", "CPU part": "x"}) == "AMD EPYC"


def test_the_machine_id_is_stable_and_differs_between_machines_without_naming_them(tmp_path: Path) -> None:
    one = lay_out(tmp_path / "one", {"etc/machine-id": "3d1219c7c4c5404aaa1f6d2a48adfda4\n"})
    two = lay_out(tmp_path / "two", {"etc/machine-id": "3d1219c7c4c5404aaa1f6d2a48adfda5\n"})
    assert hardware.machine_id("cpu", one) == hardware.machine_id("cpu", one)
    assert len({hardware.machine_id("cpu", one), hardware.machine_id("cpu", two), hardware.machine_id("x", one)}) == 3
    assert "3d1219" not in hardware.machine_id("cpu", one)
    assert hardware.machine_id("cpu", tmp_path / "none") == hardware.machine_id("cpu", tmp_path / "none")


def test_containers_of_one_machine_without_an_id_of_their_own_have_one_machine_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up_by_python, of_containers, of_cards = (
        (0x010000000001, 0x010000000002),
        (0x0242AC110002, 0x9E3A5C77F001),
        (0x020000000003 & ~(0b11 << 40), 0x020000000004 & ~(0b11 << 40)),
    )
    ids = {}
    for node in (*made_up_by_python, *of_containers, *of_cards):
        monkeypatch.setattr(hardware.uuid, "getnode", lambda node=node: node)
        ids[node] = hardware.machine_id("cpu", tmp_path)
    assert len({ids[node] for node in (*made_up_by_python, *of_containers)}) == 1
    assert len(set(ids.values())) == 3, "addresses of cards count"


def test_a_container_on_another_kind_of_machine_is_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware.uuid, "getnode", lambda: 0x0242AC110002)
    memory = psutil.virtual_memory()._replace(total=int(15.6 * 2**30))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    here = {hardware.machine_id("cpu", tmp_path), hardware.machine_id("another cpu", tmp_path)}
    product = {"sys/class/dmi/id/sys_vendor": "A Cloud\n", "sys/class/dmi/id/product_name": "large.2\n"}
    here.add(hardware.machine_id("cpu", lay_out(tmp_path / "large", product)))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory._replace(total=int(15.5 * 2**30)))
    assert hardware.machine_id("cpu", tmp_path) in here, "what the kernel keeps for itself is no other machine"
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory._replace(total=memory.total * 2))
    here.add(hardware.machine_id("cpu", tmp_path))
    monkeypatch.setattr(psutil, "cpu_count", lambda: 1024)
    here.add(hardware.machine_id("cpu", tmp_path))
    assert len(here) == 5


def test_a_variable_of_the_environment_names_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = lay_out(tmp_path, {"etc/machine-id": "3d1219c7c4c5404aaa1f6d2a48adfda4\n"})
    of_file = hardware.machine_id("cpu", root)
    monkeypatch.setenv("HARNESS_MACHINE", "runner-7")
    assert hardware.machine_id("cpu", root) == hardware.machine_id("cpu", tmp_path / "none") != of_file
    assert hardware.machine_id("another cpu", root) != hardware.machine_id("cpu", root)
    assert "runner" not in hardware.machine_id("cpu", root)
    monkeypatch.setenv("HARNESS_MACHINE", "")
    assert hardware.machine_id("cpu", root) == of_file


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS names its processor by sysctl")
@pytest.mark.parametrize("key", ["cpu family", "model", "stepping"])
def test_two_processors_that_a_hypervisor_gives_one_name_are_two_machines(tmp_path: Path, key: str) -> None:
    told = {"model name": "AMD EPYC", "cpu family": "25", "model": "1", "stepping": "1"}
    ids = set()
    for name, value in (("one", told[key]), ("other", "17")):
        lines = "".join(f"{of}\t: {text}\n" for of, text in (told | {key: value}).items())
        root = lay_out(tmp_path / name, {"etc/machine-id": "one image\n", "proc/cpuinfo": lines})
        ids.add(hardware.facts(root)["machine.id"])
    assert len(ids) == 2


def test_only_variables_that_matter_are_kept_and_secrets_never() -> None:
    kept = software.variables(
        {
            "HOME": "/root",
            "PATH": "/usr/bin",
            "AWS_SECRET_ACCESS_KEY": "hush",
            "OMP_NUM_THREADS": "2",
            "TF_XLA_FLAGS": "--tf_xla_auto_jit=2",
            "TF_API_TOKEN": "hush",
            "TF_VAR_DB_PASSWORD": "hush",
            "CUDA_LICENSE_KEY": "hush",
            "TF_CONFIG": '{"cluster": {"worker": ["hush.example:1"]}}',
            "TPU_NAME": "hush",
            "KERAS_HOME": "/root/.keras",
            "TF_DATA_PROXY": "ftp://me:hush@files/x",
            "NCCL_DEBUG": "x" * 1000,
            "NCCL_IB_DISABLE": "1",
            "FI_PROVIDER": "efa",
            "HOROVOD_CYCLE_TIME": "5",
            "HOROVOD_GLOO_RENDEZVOUS_ADDR": "hush",
            "FIREFOX": "no",
        }
    )
    assert "hush" not in str(kept)
    assert set(kept) == {
        "CUDA_LICENSE_KEY",
        "FI_PROVIDER",
        "HOROVOD_CYCLE_TIME",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR",
        "KERAS_HOME",
        "NCCL_DEBUG",
        "NCCL_IB_DISABLE",
        "OMP_NUM_THREADS",
        "TF_API_TOKEN",
        "TF_CONFIG",
        "TF_DATA_PROXY",
        "TF_VAR_DB_PASSWORD",
        "TF_XLA_FLAGS",
        "TPU_NAME",
    }
    assert kept["OMP_NUM_THREADS"] == "2"
    assert kept["TF_CONFIG"] == "(set)"
    assert kept["KERAS_HOME"] == "~/.keras"
    assert len(kept["NCCL_DEBUG"]) == 300


def test_versions_come_from_metadata_and_a_missing_tensorflow_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert software.package_versions()["numpy"]
    monkeypatch.setattr(software, "PACKAGES", ("tensorflow", "no-such-package"))

    def not_installed(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", not_installed)
    assert software.package_versions() == {"tensorflow": None}


def test_the_revision_tells_a_changed_checkout_from_a_clean_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert software.git_revision(tmp_path) is None
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
    (tmp_path / "file").write_text("1")
    for arguments in (["init", "-q"], ["add", "file"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    clean = software.git_revision(tmp_path)
    assert clean is not None
    assert len(clean) == 40
    (tmp_path / "file").write_text("two")
    assert software.git_revision(tmp_path) == f"{clean}-dirty"
    named = os.fsencode(tmp_path) + b"/no utf-8 \xff"
    Path(os.fsdecode(named)).touch()
    for arguments in (["config", "core.quotepath", "off"], ["add", "--all"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    assert software.git_revision(tmp_path) == f"{clean}-dirty"
    monkeypatch.setattr(software, "LONGEST_LOOK_S", 1e-9)
    assert software.git_revision(tmp_path) == f"{clean}-unknown"


def test_containers_are_known_by_their_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert software.container(tmp_path / "none") is None
    assert software.container(lay_out(tmp_path / "a", {".dockerenv": ""})) == "docker"
    assert software.container(lay_out(tmp_path / "b", {"run/.containerenv": ""})) == "podman"
    assert software.container(lay_out(tmp_path / "c", {"proc/1/cgroup": "0::/kubepods/x"})) == "kubernetes"


def test_physical_cores_are_those_of_the_machine() -> None:
    assert hardware.facts()["cpu.logical_cores"] == psutil.cpu_count()
