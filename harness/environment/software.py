"""The operating system, Python, package versions, environment variables, and this checkout's revision."""

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from harness.environment.fact import Fact, Facts
from harness.environment.files import ROOT_FOLDER, fields, text
from harness.visible import HIDDEN, SECRET_NAME

PACKAGES = (
    "tensorflow",
    "keras",
    "tf_keras",
    "numpy",
    "tensorflow-datasets",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cublas-cu12",
    "nvidia-cudnn-cu12",
    "nvidia-nccl-cu12",
    "nvidia-cuda-runtime-cu13",
    "nvidia-cublas-cu13",
    "nvidia-cudnn-cu13",
    "nvidia-nccl-cu13",
    "libtpu",
    "jax",
    "jaxlib",
)
_VARIABLES = re.compile(
    r"(?!TF_CLI_)(TF|OMP|GOMP|XLA|JAX|TORCH|PYTORCH|GLOO|KERAS|CUDA|NCCL|FI|UCX|TPU|HOROVOD|KMP|MKL|OPENBLAS|MALLOC|TCMALLOC|NVIDIA|DTENSOR)_.*"
    r"|LD_PRELOAD|TF2_BEHAVIOR"
)
_NAMES_HOSTS = re.compile(r"TF_CONFIG|(TPU|HOROVOD)_.*(NAME|ADDR|ENDPOINT|PROJECT).*|NCCL_COMM_ID")
_LONGEST_VALUE = 300
LONGEST_LOOK_S = 10
"""Seconds for git to see whether tracked files were changed."""


def facts(root: Path = ROOT_FOLDER) -> Facts:
    """`os.*`, `python.*`, `package.NAME`, `env.NAME` and `git.revision`."""
    return {
        "os.system": platform.system(),
        "os.release": platform.release(),
        "os.distribution": distribution(root),
        "os.container": container(root),
        "os.libc": " ".join(platform.libc_ver()).strip() or None,
        "python.implementation": platform.python_implementation(),
        **_versions_now(),
        **{f"env.{name}": value for name, value in variables(os.environ).items()},
        "git.revision": git_revision(),
    }


def package_versions() -> dict[str, str | None]:
    """Versions of the packages that decide timings, from their metadata: nothing is imported.

    TensorFlow and Keras are always there, None when not installed; of the others, those installed.
    """
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            if name in ("tensorflow", "keras"):
                found[name] = None
    return found


def other_versions(then: Mapping[str, Fact], later: Mapping[str, Fact] | None = None) -> list[str]:
    """Python and packages that have another version later, or by now, than in a run's facts, in words: `keras 3.11.0 →
    3.12.0`.

    Nothing of facts without Python's version: they do not tell of software.
    """
    before, after = _versions(then), _versions(_versions_now() if later is None else later)
    return [
        f"{key.removeprefix('package.').removesuffix('.version')} {before.get(key, 'not there')} → "
        f"{after.get(key, 'not there')}"
        for key in dict.fromkeys([*before, *after])
        if "python.version" in before.keys() & after.keys() and before.get(key) != after.get(key)
    ]


def _versions(of: Mapping[str, Fact]) -> dict[str, Fact]:
    return {
        key: version
        for key, version in of.items()
        if version is not None and (key == "python.version" or key.startswith("package."))
    }


def _versions_now() -> Facts:
    return {
        "python.version": platform.python_version(),
        **{f"package.{name}": version for name, version in package_versions().items()},
    }


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that TensorFlow, XLA, CUDA, NCCL, network libraries, TPUs, OpenMP and allocators read.

    A value that could be a secret or that names hosts is `(set)`; user and password in an address and the home
    folder's path are masked; long values are cut.
    """
    found = {}
    home = environment.get("HOME", "")
    for name in sorted(environment):
        if not _VARIABLES.fullmatch(name):
            continue
        value = environment[name]
        if SECRET_NAME.search(name) or _NAMES_HOSTS.fullmatch(name):
            found[name] = HIDDEN
            continue
        value = re.sub(r"://[^/@\s]+@", "://(masked)@", value)
        if len(home) > 1:
            value = value.replace(home, "~")
        found[name] = value[:_LONGEST_VALUE].encode("utf-8", "backslashreplace").decode()
    return found


def distribution(root: Path = ROOT_FOLDER) -> str | None:
    """For example `Debian GNU/Linux 12 (bookworm)` or `macOS 15.1`."""
    mac = platform.mac_ver()[0]
    if mac:
        return f"macOS {mac}"
    return fields(root / "etc/os-release", "=").get("PRETTY_NAME", "").strip('"') or None


def container(root: Path = ROOT_FOLDER) -> str | None:
    """`docker`, `podman`, `kubernetes`, `lxc`… when this process runs in a container, by its marks."""
    if (root / "run/.containerenv").exists():
        return "podman"
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    if (root / ".dockerenv").exists():
        return "docker"
    groups = text(root / "proc/1/cgroup") or ""
    for mark in ("kubepods", "docker", "lxc", "podman"):
        if mark in groups:
            return "kubernetes" if mark == "kubepods" else mark
    return text(root / "run/systemd/container")


def git_revision(folder: Path | None = None) -> str | None:
    """The commit of the working folder, None outside git; with `-dirty` when tracked files differ, and with `-unknown`
    when there was no time to see whether they do."""
    commit = _git(folder, 1, "rev-parse", "--verify", "--quiet", "HEAD")
    if not commit:
        return None
    changed = _git(folder, LONGEST_LOOK_S, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-unknown" if changed is None else f"{commit}-dirty" if changed else commit


def _git(folder: Path | None, seconds: float, *arguments: str) -> str | None:
    """What it says, without white space around; None when there is no git, it fails, or it takes longer."""
    # Only reads: no lock is taken that would disturb a commit made at the same moment.
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # names of files that it prints may be no UTF-8
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.strip()
