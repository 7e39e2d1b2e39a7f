"""Why the agent does not do as asked; each kind is one HTTP status (`middlewares.answer_errors`).

    AgentError
     ├─ BadRequestError         400: the request is wrong; the message names the field
     ├─ LinkStateError          500: a port that is not there, or not remote, was enabled or disabled; as upstream
     ├─ MachineUnservableError  500: a value of the stored machine cannot be told to a client
     ├─ PortsError              500: the files of ports and gateways cannot be read or written
     ├─ NotReadyError           503: ports are not reloaded yet, or the agent is stopping
     └─ OverloadedError         503: more clients want this at once than the agent bears

Causes are chained.
"""


class AgentError(Exception):
    """Root of everything that the agent raises."""


class BadRequestError(AgentError):
    """The request is wrong; the message names the field and its value."""


class LinkStateError(AgentError):
    """The link state of such a port cannot be set; the message is upstream's."""


class MachineUnservableError(AgentError):
    """A value of the stored machine cannot be told to a client; the message names interface, key and value."""


class PortsError(AgentError):
    """The files of ports and gateways cannot be read or written; nothing was changed."""


class NotReadyError(AgentError):
    """Ports are not reloaded yet, or the agent is stopping: worth another try."""


class OverloadedError(AgentError):
    """More clients want this at once than the agent bears; the message says how many do. Worth another try."""
