"""Probes that a temporary pod makes, and their results: JSON on the standard input and output of `check probe`."""

from enum import StrEnum

import msgspec

PORT = 7413
"""TCP port of the responder, in the network namespace of its pod."""

EXPECTED_SECONDS = 10.0
"""Until an answer is missing that must come."""

UNEXPECTED_SECONDS = 2.0
"""Until an answer is missing that must not come."""

LONG_SECONDS = 5.0
"""For the long packets of a connection that is open."""

CONCURRENT = 256
"""Probes of one pod at the same time: below the usual limit of open files."""


class Kind(StrEnum):
    """How a target is asked: the responder of another temporary pod, any TCP server, or by ICMP echo requests."""

    RESPONDER = "responder"
    CONNECT = "connect"
    ECHO = "echo"


class Outcome(StrEnum):
    """What came back. `SHORT`: a connection, but long packets are lost. `OTHER`: not the target answers.

    `ABSENT`: the pod does not have the address to send from.
    """

    ANSWERED = "answered"
    SHORT = "short"
    OTHER = "other"
    NOTHING = "nothing"
    ABSENT = "absent"
    NOT_PERMITTED = "not-permitted"


class Probe(msgspec.Struct, frozen=True, omit_defaults=True):
    """One probe from the address `source`, by the link that has it.

    `expected`: whether an answer is, which is then waited for longer. `identity` is the responder's that must answer.
    """

    kind: Kind
    target: str
    source: str
    expected: bool
    port: int = PORT
    identity: str = ""


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """Outcome of a probe; `detail` says why nothing came back."""

    outcome: Outcome
    detail: str = ""
