"""Joining a namespace that is not there, or not a namespace, says so in one line."""

import shutil
import socket
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


def test_another_name_of_the_host_is_seen_by_that_process_alone() -> None:
    code = (
        "import socket; from harness.trial.namespace import call_host;"
        "call_host('10.0.0.7'); print(socket.gethostname())"
    )
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code]
    if shutil.which("unshare") is None or subprocess.run([*command[:3], "true"], capture_output=True).returncode:
        pytest.skip("this user gets no namespace here")
    before = socket.gethostname()
    assert subprocess.run(command, capture_output=True, text=True).stdout == "10.0.0.7\n"
    assert socket.gethostname() == before


def test_an_ordinary_user_who_may_not_name_the_host_is_told() -> None:
    code = """
import ctypes, types
from harness.trial import namespace
ctypes.CDLL = lambda *_, **__: types.SimpleNamespace(unshare=lambda _kind: ctypes.set_errno(1) or -1)
namespace.call_host("10.0.0.7")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = "NamespaceError: the host cannot be called '10.0.0.7': Operation not permitted"
    assert done.stderr.splitlines()[-1].endswith(said)
