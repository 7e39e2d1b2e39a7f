"""Errors of a call: the codes on the wire, and one exception hierarchy.

    PluginError                 carries its code; the runtime reads code, message and details
     ├─ TryAgainError           11: a temporary condition
     │   └─ UnreachableError    the agent does not answer, or is not ready
     ├─ RejectedError           101: the agent rejected the request
     └─ DamagedRecordError      106: the record of an attachment cannot be read

Codes below 100 are those of the CNI specification 1.1.0, sections "STATUS" and "Well-known Error Codes", and of the
reference library (8, 999); ours begin at 100. The cause is chained.
"""

from enum import IntEnum


class Code(IntEnum):
    """Error codes on the wire."""

    INCOMPATIBLE_VERSION = 1
    UNSUPPORTED_FIELD = 2  # the message contains key and value
    UNKNOWN_CONTAINER = 3  # CHECK: the container is unknown, so the runtime need not clean up
    INVALID_ENVIRONMENT = 4  # the message contains the names of the variables
    IO_FAILURE = 5
    DECODING_FAILURE = 6
    INVALID_CONFIG = 7
    OWN_NETNS = 8  # the sandbox is the plugin's own network namespace
    TRY_AGAIN = 11
    UNAVAILABLE = 50  # STATUS: the plugin cannot serve any ADD
    LIMITED = 51  # STATUS: existing attachments may be disconnected too

    BAD_AGENT_RESPONSE = 100  # the agent's answer is malformed; the message contains item and key
    AGENT_REJECTED = 101
    EXISTS = 102  # the attachment, or a link of its name, already exists
    INTERFACE_NAMES = 103  # duplicate or invalid interface names of the pod
    KERNEL = 104  # the kernel rejected creating or removing a link, address or route
    CHECK_FAILED = 105  # CHECK: the kernel state differs from what ADD created
    DAMAGED_RECORD = 106  # the record of an attachment cannot be read; DEL removes what it can find
    DAEMON_PROTOCOL = 107  # the shim and the daemon speak different protocols, or the caller is not root

    INTERNAL = 999


class PluginError(Exception):
    """The call fails with `code`; `details` is additional text for operators."""

    def __init__(self, code: Code, message: str, details: str = "") -> None:
        super().__init__(f"{message}: {details}" if details else message)
        self.code = code
        self.message = message
        self.details = details


class TryAgainError(PluginError):
    """A temporary condition: the runtime may retry the call."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(Code.TRY_AGAIN, message, details)


class UnreachableError(TryAgainError):
    """The agent does not answer in time, or answers that it is not ready (503); `was_sent` if it has the request."""

    def __init__(self, message: str, *, was_sent: bool = False) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class RejectedError(PluginError):
    """The agent answered with a status other than success, 404 and 503; `is_final` if a repetition would not help."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(Code.AGENT_REJECTED, message)
        self.is_final = is_final


class DamagedRecordError(PluginError):
    """The record at `path` is malformed; `reason` says why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(Code.DAMAGED_RECORD, f"record {path} is damaged: {reason}")
