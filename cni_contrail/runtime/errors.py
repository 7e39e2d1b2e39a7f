"""Errors of the CNI runtime.

CniRuntimeError
 ├─ NetworkConfigurationError   a network configuration is invalid; names file and key
 ├─ AttachmentError             a parameter of the attachment is invalid: container ID, interface, netns, arguments
 ├─ PluginCallError             the plugin returned an error object: its code, message and details
 ├─ PluginFailedError           the plugin could not be executed, or its output does not conform to the protocol
 ├─ PluginTimeoutError          the plugin was killed at the deadline of the operation
 ├─ ResultError                 a result, or the result cache, is unusable
 └─ SandboxError                a network namespace could not be created, entered or removed

Messages name the object at fault; the cause is chained.
"""


class CniRuntimeError(Exception):
    """Base of all errors of this package; raised itself for several failures, which its cause holds."""


class NetworkConfigurationError(CniRuntimeError):
    """A network configuration is invalid; the message names file and key."""


class AttachmentError(CniRuntimeError):
    """A parameter of the attachment is invalid; the message names it and its value."""


class PluginCallError(CniRuntimeError):
    """A plugin returned an error object (CNI specification 1.1.0, section 5, "Error")."""

    def __init__(self, plugin: str, command: str, *, code: int, msg: str, details: str) -> None:
        explained = f"{msg}; {details}" if details else msg
        super().__init__(f"plugin {plugin} failed ({command}): {explained} (code {code})")
        self.plugin = plugin
        self.command = command
        self.code = code
        self.msg = msg
        self.details = details


class PluginFailedError(CniRuntimeError):
    """A plugin was not found, could not be executed, crashed, or wrote malformed output."""


class PluginTimeoutError(CniRuntimeError):
    """A plugin timed out and was killed, with all processes that it had started."""


class ResultError(CniRuntimeError):
    """A result is malformed, has another version than its configuration, or cannot be converted or cached."""


class SandboxError(CniRuntimeError):
    """A network namespace could not be created, entered or removed; the message names its path."""
