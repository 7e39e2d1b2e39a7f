"""What a runtime cannot do, and why.

CniRuntimeError
 ├─ ConfigurationError   a network configuration cannot be used; names file and key
 ├─ AttachmentError      a parameter of the attachment is wrong: container ID, interface name, namespace, arguments
 ├─ PluginError          the plugin answered with an error object: its code, message and details
 ├─ PluginFailedError    the plugin could not be run, or did not answer in the protocol's form
 ├─ PluginTimeoutError   the plugin was killed, since the time for the operation was over
 ├─ ResultError          a result, or the cache of results, cannot be used
 └─ SandboxError         a network namespace could not be made, entered or removed

Messages name the culprit; the cause is chained.
"""


class CniRuntimeError(Exception):
    """Root of everything that this package raises; by itself, several at once, which its cause holds."""


class NetworkConfigurationError(CniRuntimeError):
    """A network configuration cannot be used; the message names file and key."""


class AttachmentError(CniRuntimeError):
    """A parameter of the attachment is wrong; the message names it and its value."""


class PluginCallError(CniRuntimeError):
    """A plugin answered with an error object (CNI specification 1.1.0, section 5, "Error")."""

    def __init__(self, plugin: str, command: str, *, code: int, msg: str, details: str) -> None:
        explained = f"{msg}; {details}" if details else msg
        super().__init__(f"plugin {plugin} failed ({command}): {explained} (code {code})")
        self.plugin = plugin
        self.command = command
        self.code = code
        self.msg = msg
        self.details = details


class PluginFailedError(CniRuntimeError):
    """A plugin is not there, could not be run, crashed, or wrote what is no answer."""


class PluginTimeoutError(CniRuntimeError):
    """A plugin did not end in time and was killed, with all processes that it had started."""


class ResultError(CniRuntimeError):
    """A result is malformed, of another version than its configuration, or cannot be converted or cached."""


class SandboxError(CniRuntimeError):
    """A network namespace could not be made, entered or removed; the message names its path."""
