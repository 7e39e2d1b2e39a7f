"""Errors of the agent. Each maps to one HTTP status (`middlewares.translate_errors`).

    AgentError
     ├─ BadRequestError                400: the request is invalid; the message names the field
     ├─ ConflictError                  409: another follower programs the datapath
     ├─ LinkStateError                 500: port to enable or disable not found or not remote, as the vrouter agent
     ├─ UnservableVirtualMachineError  500: a stored value cannot be represented on the wire
     ├─ StorageError                   500: port or gateway files cannot be read or written
     ├─ NotReadyError                  503: ports are not loaded yet, or the agent is stopping
     └─ OverloadedError                503: a limit on concurrent requests is reached

Causes are chained.
"""


class AgentError(Exception):
    """Root of all errors that the agent raises."""


class BadRequestError(AgentError):
    """The request is invalid; the message names the field and its value."""


class ConflictError(AgentError):
    """Another follower programs the datapath; the message names it."""


class LinkStateError(AgentError):
    """The link state of the port cannot be set; the message is that of the Contrail vrouter agent."""


class UnservableVirtualMachineError(AgentError):
    """A stored value cannot be represented on the wire; the message names interface, key and value."""


class StorageError(AgentError):
    """Port or gateway files cannot be read or written; nothing was changed."""


class NotReadyError(AgentError):
    """Ports are not loaded yet, or the agent is stopping; the client may retry."""


class OverloadedError(AgentError):
    """A limit on concurrent requests is reached; the message states the limit. The client may retry."""
