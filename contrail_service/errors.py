"""Errors that keep a process from starting or running.

ServiceError
 ├─ ConfigurationError  invalid configuration file or key: exit status 2
 ├─ ListenError         an address cannot be listened on: exit status 2
 ├─ DataError           the process's data cannot be used: exit status 2
 └─ RestartError        a restart may help: exit status 1
"""


class ServiceError(Exception):
    """Root of the errors that keep a process from starting or running."""


class ConfigurationError(ServiceError):
    """The configuration is invalid; the message names file, key and value."""


class ListenError(ServiceError):
    """An address cannot be listened on; the message names it and the cause."""


class DataError(ServiceError):
    """The process's data cannot be used: another process uses them, or they are corrupt."""


class RestartError(ServiceError):
    """The process cannot continue and must be restarted by its supervisor; the message names what was lost."""
