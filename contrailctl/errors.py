"""What keeps a command from being done.

ContrailctlError
 ├─ UsageError        the command line asks for what cannot be: exit status 2
 ├─ UnreachableError  manager or agent did not answer in time, or at all
 ├─ NotFoundError     the object is not there
 └─ ResponseError     manager or agent answered an error, or something that is not understood

All but the first are exit status 1. Messages are one line that names URL or object.
"""


class ContrailctlError(Exception):
    """Root of everything that keeps a command from being done."""


class UsageError(ContrailctlError):
    """The command line asks for what cannot be."""


class UnreachableError(ContrailctlError):
    """Manager or agent did not answer; the message names the URL and the cause."""


class NotFoundError(ContrailctlError):
    """The object is not there; the message names it, and where it was looked for."""


class ResponseError(ContrailctlError):
    """Manager or agent answered an error, or something that is not understood."""
