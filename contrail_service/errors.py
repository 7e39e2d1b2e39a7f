"""What keeps a process from starting, or from going on.

ServiceError
 ├─ ConfigurationError  a configuration file or key is wrong: exit status 2
 ├─ ListenError         an address cannot be listened on: exit status 2
 ├─ DataError           the data that the process lives on cannot be used: exit status 2
 └─ RestartError        started anew it may go on: exit status 1
"""


class ServiceError(Exception):
    """Root of what keeps a process from starting, or from going on."""


class ConfigurationError(ServiceError):
    """The configuration is wrong; the message names file, key and value."""


class ListenError(ServiceError):
    """An address cannot be listened on; the message names it and the cause."""


class DataError(ServiceError):
    """The data that the process lives on cannot be used: another process has them, or they are damaged."""


class RestartError(ServiceError):
    """The process cannot go on from where it is; its supervisor starts it anew. The message names what was lost."""
