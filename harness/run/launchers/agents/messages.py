"""What a parent and an agent say to each other, a JSON line each; anything else ends the connection."""

from typing import Annotated, Literal

from pydantic import Field

from harness.protocol.messages import Message, Request

PROTOCOL = 6
Number = Annotated[int, Field(ge=0, le=2**53)]
Hexadecimal = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
ShortText = Annotated[str, Field(max_length=253)]
SaidText = Annotated[str, Field(max_length=4000)]


class Equipment(Message):
    """What of an engine must be the same on every host."""

    packages: Annotated[dict[ShortText, ShortText], Field(max_length=64)]
    """Versions of what the engine is made of, by its name for people."""
    python: ShortText
    variables: Annotated[dict[ShortText, ShortText], Field(max_length=64)] = {}
    """Environment variables, of those that must be the same, that are set there."""


class Identity(Equipment):
    """What an agent is, with the engine that every agent imports, and where."""

    harness: ShortText
    source: ShortText
    """A digest of the harness's own files."""
    host: ShortText
    """The host's name for a person."""
    address: ShortText
    """What other hosts reach it at; empty is where its connection comes from."""
    machine: ShortText
    """The same for processes that may join each other's namespaces."""
    node: ShortText = ""
    """Slurm's name of the host, where Slurm started the agent."""
    confined: ShortText = ""
    """`1 of 64 processors`: what it may use, where that is not all that the host has."""


class Greeting(Message):
    """The parent's first word."""

    protocol: Number
    nonce: Hexadecimal


class Hello(Message):
    """The agent's answer; the proof covers everything else in it."""

    protocol: Number
    nonce: Hexadecimal
    identity: Identity
    proof: Hexadecimal


class Admission(Message):
    """The parent takes the agent, with a proof that it has the token too, or says why not."""

    proof: Hexadecimal | None = None
    refused: Annotated[str, Field(max_length=2000)] | None = None


class Order(Message):
    """The parent's word to an agent that it has taken. `number` is the process that is meant."""

    do: Literal["spawn", "tell", "signal", "hang_up", "release", "tail", "hold", "free", "import"]
    number: Number = 0
    request: Request | None = None
    text: str = ""
    """`tell`: one line for the process; `import`: an engine's name."""
    signal: int = 0
    count: Number = 0
    """`hold`: ports; `tail`: characters."""
    base: Number = 0
    """`hold`: the first port; 0 is any that are free."""


class News(Message):
    """An agent's word to its parent."""

    of: Literal["ready", "line", "closed", "exited", "tail", "held", "failed", "imported"]
    number: Number = 0
    text: str = ""
    status: int = 0
    out_of_memory: bool = False
    """`exited`: whether the kernel there ended it, as memory ran out."""
    ports: list[Number] = []
    facts: Annotated[dict[ShortText, SaidText | int | float | bool | None], Field(max_length=2000)] = {}
    """`ready`: what the host is (`harness.environment`)."""
    equipment: Equipment | None = None
    """`imported`: of the engine that was asked for; None where it is not there, and `text` says why."""
