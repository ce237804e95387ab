"""Joining a namespace that is not there, or not a namespace, says so in one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.trial.namespace import NamespaceError, enter


def test_a_namespace_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(NamespaceError, match="net cannot be joined: No such file or directory"):
        enter(str(tmp_path / "net"))


def test_what_is_no_namespace_is_refused_with_the_kernels_reason(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    # in a process of its own: were it to succeed, this one would be somewhere else
    code = f"from harness.trial.namespace import enter; enter({str(file)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith(f"NamespaceError: {file} cannot be joined: Invalid argument")


def test_a_namespace_that_cannot_be_joined_leaves_the_process_where_it_is() -> None:
    code = """
import os
from harness.trial.namespace import NamespaceError, enter
try:
    enter("/nowhere/net", "/proc/self/ns/user")
except NamespaceError as error:
    print(error, os.readlink("/proc/self/ns/user"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    here = Path("/proc/self/ns/user").readlink()
    assert done.stdout == f"/nowhere/net cannot be joined: No such file or directory {here}\n"
