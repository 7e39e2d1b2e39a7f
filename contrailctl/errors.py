"""Errors of a command.

ContrailctlError
 ├─ UsageError        invalid command line: exit status 2
 ├─ UnreachableError  manager or agent did not respond in time, or at all
 ├─ NotFoundError     the object does not exist
 ├─ NotPermittedError the command needs rights that the user does not have
 └─ ResponseError     manager or agent returned an error or an invalid response

The exit status of all but the first is 1. Messages are one line that names URL or object.
"""


class ContrailctlError(Exception):
    """Root of the errors of a command."""


class UsageError(ContrailctlError):
    """Invalid command line."""


class UnreachableError(ContrailctlError):
    """Manager or agent did not respond; the message names the URL and the cause."""


class NotFoundError(ContrailctlError):
    """The object does not exist; the message names it and where it was looked up."""


class NotPermittedError(ContrailctlError):
    """The command needs rights that the user does not have."""


class ResponseError(ContrailctlError):
    """Manager or agent returned an error or an invalid response."""
