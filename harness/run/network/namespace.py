"""The parent's end of a holder: a network namespace that is there as long as this object is open."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypedDict

from harness.errors import HarnessError
from harness.protocol.channel import Channel

PROGRAMS = Path(__file__).parent
PYTHON = (sys.executable, "-I", "-S")
"""Starts in hundredths of a second: no site, no package, nothing from the environment."""
START_LIMIT_S = 10.0
ANSWER_LIMIT_S = 10.0


class NetworkError(HarnessError):
    """An emulated network cannot be built, changed or measured."""

    may_pass: ClassVar[bool] = True
    """Whether another try may end better."""


class NotAvailable(NetworkError):
    """This machine, or this user, cannot have an emulated network; the text is the reason."""

    may_pass = False


class TooSlow(NetworkError):
    """A namespace did not answer in time, which may be this moment's fault."""


@dataclass(frozen=True)
class NetworkHost:
    """A network namespace, as a process that wants to join it needs to know it (`harness.trial.namespace`)."""

    address: str
    """The IPv4 address that others on the same network reach it by."""
    namespace: str
    """The path of the network namespace, there as long as the network is."""
    user_namespace: str | None = None
    """The path of the user namespace that must be joined first, where an ordinary user made it."""


class HolderAnswer(TypedDict, total=False):
    """A holder's word: `ready` or why it was `refused`, at first; then what became of each program."""

    ready: int
    refused: str
    status: int | None
    """None while the program runs on."""
    output: str


class Namespace:
    """One network namespace. Starting does not wait for the process: call `wait` before anything else.

    Start it from a thread that lives as long as the namespace shall: the kernel ends the holder with the
    thread that started it.
    """

    def __init__(self, as_user: bool = False) -> None:
        ours, theirs = socket.socketpair()
        arguments = [str(theirs.fileno()), str(os.getpid()), *(["user"] if as_user else [])]
        self._as_user = as_user
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [*PYTHON, str(PROGRAMS / "holder.py"), *arguments],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is for the run, which then closes this in order
                )
            except OSError as error:
                ours.close()
                raise NotAvailable(f"{sys.executable} cannot be started: {error.strerror or error}") from None
        self._channel = Channel(ours)

    @property
    def pid(self) -> int:
        """The holder's process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the holder, and with it the namespace, is still there."""
        return self._process.poll() is None

    def host(self, address: str) -> NetworkHost:
        """This namespace, for those who join it."""
        user = f"/proc/{self.pid}/ns/user" if self._as_user else None
        return NetworkHost(address, f"/proc/{self.pid}/ns/net", user)

    def wait(self) -> None:
        """Until the namespace is there, its loopback up. NotAvailable with the kernel's reason; TooSlow."""
        try:
            answer = self._answer(START_LIMIT_S)
        except TooSlow:
            raise
        except NetworkError as error:
            raise NotAvailable(str(error)) from None
        if "ready" not in answer:
            kind = "user and network namespace" if self._as_user else "network namespace"
            raise NotAvailable(f"the kernel refuses a {kind}: {answer['refused']}")

    def run(self, *program: str, text: str = "", limit_s: float = ANSWER_LIMIT_S) -> str:
        """What a program, given by its path, says inside the namespace; `text` is its standard input.

        NetworkError with its last line when it fails, or when it takes longer than `limit_s`.
        """
        self._ask(program, text, wait=True)
        return self._output(program, self._answer(limit_s), 0)

    def start(self, *program: str, limit_s: float = ANSWER_LIMIT_S, vital: bool = False) -> str:
        """Start a program that stays in the namespace, until the namespace is closed; its first line.

        When one that is `vital` ends, so does the holder. NetworkError when the program ends or takes longer than
        `limit_s` before it says anything.
        """
        self._ask(program, "", wait=False, vital=vital)
        return self._output(program, self._answer(limit_s), None)

    def hang_up(self) -> None:
        """Let the holder end, without waiting for it."""
        self._channel.close()

    def close(self) -> None:
        """End the holder and what runs in it. May be called again."""
        self.hang_up()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        self._process.kill()
        self._process.wait()

    def _ask(self, program: Sequence[str], text: str, wait: bool, vital: bool = False) -> None:
        try:
            self._channel.send_json(json.dumps({"run": program, "input": text, "wait": wait, "vital": vital}))
        except OSError:
            raise NetworkError("the process that holds a network namespace is gone") from None

    def _answer(self, limit_s: float) -> HolderAnswer:
        try:
            line = self._channel.receive_line(limit_s)
        except (EOFError, OSError):
            raise NetworkError("the process that holds a network namespace is gone") from None
        if line is None:
            self.close()  # an answer that comes later would be taken for that to the next question
            raise TooSlow(f"a network namespace did not answer within {limit_s:g} s")
        answer: HolderAnswer = json.loads(line)
        return answer

    def _output(self, program: Sequence[str], answer: HolderAnswer, expected: int | None) -> str:
        output, status = answer["output"], answer["status"]
        if status != expected:
            # ip and tc say what is wrong before which line of a batch it was
            said = [line for line in output.splitlines() if not line.startswith("Command failed")]
            name = next((Path(part).name for part in program if part.endswith(".py")), Path(program[0]).name)
            raise NetworkError(f"{name}: {(said or [f'ended with status {status}'])[-1]}")
        return output
