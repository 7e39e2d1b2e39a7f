"""What a call is answered when it fails: one table of codes, one root.

    PluginError                 carries its code; the runtime reads code, message and details
     ├─ TryAgainError           11: a passing condition
     │   └─ UnreachableError    nobody answers at the agent's address, or not now
     ├─ RefusedError            101: the agent answered, and said no
     └─ DamagedRecordError      106: what is kept of an attachment cannot be read

Codes below 100 are those of the CNI specification 1.1.0, sections "STATUS" and "Well-known Error Codes", and of the
reference library (8, 999); ours begin at 100. The cause is chained.
"""

from enum import IntEnum


class Code(IntEnum):
    """Error codes on the wire."""

    INCOMPATIBLE_VERSION = 1
    UNSUPPORTED_FIELD = 2  # the message holds key and value
    UNKNOWN_CONTAINER = 3  # CHECK: nothing is known of the container, so the runtime need not clean up
    INVALID_ENVIRONMENT = 4  # the message holds the names of the variables
    IO_FAILURE = 5
    DECODING_FAILURE = 6
    INVALID_CONFIG = 7
    OWN_NETNS = 8  # the sandbox is the namespace that the plugin itself runs in
    TRY_AGAIN = 11
    UNAVAILABLE = 50  # STATUS: no ADD can be served
    LIMITED = 51  # STATUS: nor may what is attached be connected

    BAD_AGENT_RESPONSE = 100  # the agent's answer is not what it must be: item and key are named
    AGENT_REJECTED = 101
    EXISTS = 102  # the attachment, or a link of its name, is there already
    INTERFACE_NAMES = 103  # two interfaces of the pod want one name, or a name that no link can have
    KERNEL = 104  # a link, address or route could not be made or removed
    CHECK_FAILED = 105  # CHECK: what is there differs from what ADD made
    DAMAGED_RECORD = 106  # the file that keeps an attachment cannot be read: DEL sees what is left of it
    DAEMON_PROTOCOL = 107  # native shim and daemon do not understand each other, or must not

    INTERNAL = 999


class PluginError(Exception):
    """The call fails with `code`; `details` is for people who read further."""

    def __init__(self, code: Code, message: str, details: str = "") -> None:
        super().__init__(f"{message}: {details}" if details else message)
        self.code = code
        self.message = message
        self.details = details


class TryAgainError(PluginError):
    """The condition will clear up: the runtime may call again."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(Code.TRY_AGAIN, message, details)


class UnreachableError(TryAgainError):
    """Nobody answers at the agent's address in time, or it says that it cannot answer now (503)."""


class RejectedError(PluginError):
    """The agent answered with a status that is neither success nor "not there" nor "not now"."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.AGENT_REJECTED, message)


class DamagedRecordError(PluginError):
    """The record at `path` cannot be read, for `reason`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(Code.DAMAGED_RECORD, f"record {path} is damaged: {reason}")
