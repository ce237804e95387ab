"""A disk that is soon full."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def disk_of(size: str, parent: Path) -> Iterator[Path]:
    """A file system of `size`, as mount has it (`128k`), in a new folder of `parent`. Only root can mount one: the test
    is skipped elsewhere."""
    if os.geteuid() != 0 or sys.platform != "linux" or shutil.which("mount") is None:
        pytest.skip("mounting a tmpfs needs root on Linux")
    folder = parent / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no tmpfs may be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
