"""Who may join: both sides prove that they have the token, which itself is never sent.

The token protects who is taken, not what is said afterwards: that is neither encrypted nor signed, and nor is
TensorFlow's own traffic between workers. On a network that others use, it belongs inside a tunnel.
"""

import hashlib
import hmac
import secrets
import socket
import time

from pydantic import ValidationError

from harness.errors import HarnessError
from harness.run.launchers.agents.identity import unequal
from harness.run.launchers.agents.messages import PROTOCOL, Admission, Greeting, Hello, Identity
from harness.run.launchers.agents.wire import HANDSHAKE_S, LONGEST_BYTES, Wire, WireError

LEAST_TOKEN = 16
"""Characters: what could be guessed by trying is no token."""


class JoinError(HarnessError):
    """An agent and a parent do not come together; the text is the reason."""


class NotHeard(JoinError):
    """The other side went or kept silent before it had answered, which says nothing of the next attempt."""


class WrongToken(JoinError):
    """The two sides have different tokens."""

    exit_code = 2


def new_token() -> str:
    """A token for one run: 128 random bits."""
    return secrets.token_hex(16)


def admit(wire: Wire, token: str, ours: Identity) -> Identity:
    """The parent's side: who has connected. JoinError, which the other side is told too, when it is refused."""
    deadline = time.monotonic() + HANDSHAKE_S
    greeting = Greeting(protocol=PROTOCOL, nonce=secrets.token_hex(32))
    try:
        wire.send(greeting)
        hello = Hello.model_validate_json(wire.receive(deadline))
    except ValidationError:
        raise _refusing(wire, JoinError("what it says is no hello of a worker")) from None
    except WireError as error:
        raise _refusing(wire, JoinError(str(error))) from None
    if hello.protocol != PROTOCOL:
        raise _refusing(wire, JoinError(f"it speaks protocol {hello.protocol}, this run {PROTOCOL}"))
    if not hmac.compare_digest(hello.proof, _proof(token, "worker", greeting.nonce, hello.nonce, hello.identity)):
        raise _refusing(wire, WrongToken("token: it is not this run's"))
    if different := unequal(ours, hello.identity):
        raise _refusing(wire, JoinError(f"{different}; both must have the same"))
    try:
        wire.send(Admission(proof=_proof(token, "parent", greeting.nonce, hello.nonce, hello.identity)))
    except WireError as error:
        raise JoinError(str(error)) from None
    wire.longest = LONGEST_BYTES
    return hello.identity


def ask(wire: Wire, token: str, ours: Identity) -> None:
    """The agent's side; JoinError when it is refused or the other side is not the run that gave out the token."""
    deadline = time.monotonic() + HANDSHAKE_S
    try:
        greeting = Greeting.model_validate_json(wire.receive(deadline))
        nonce = secrets.token_hex(32)
        proof = _proof(token, "worker", greeting.nonce, nonce, ours)
        wire.send(Hello(protocol=PROTOCOL, nonce=nonce, identity=ours, proof=proof))
        admission = Admission.model_validate_json(wire.receive(deadline))
    except ValidationError:
        raise JoinError("what answers there is no sweep of this harness") from None
    except WireError as error:
        raise NotHeard(str(error)) from None
    if admission.refused is not None:
        said = "".join(character for character in admission.refused if character.isprintable())
        raise (WrongToken if said.startswith("token") else JoinError)(said)
    expected = _proof(token, "parent", greeting.nonce, nonce, ours)
    if admission.proof is None or not hmac.compare_digest(admission.proof, expected):
        raise WrongToken("token: what answers there does not have it")
    wire.longest = LONGEST_BYTES


def _proof(token: str, side: str, parent_nonce: str, agent_nonce: str, identity: Identity) -> str:
    said = "\n".join([f"harness {PROTOCOL}", side, parent_nonce, agent_nonce, identity.model_dump_json()])
    return hmac.new(token.encode(), said.encode(), hashlib.sha256).hexdigest()


def _refusing(wire: Wire, error: JoinError) -> JoinError:
    try:
        wire.send(Admission(refused=str(error)))
        wire.connection.shutdown(socket.SHUT_WR)  # the words arrive before the connection is closed
    except (WireError, OSError):
        pass
    return error
