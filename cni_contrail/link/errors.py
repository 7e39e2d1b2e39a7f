"""Errors of creating, removing or reading an interface.

    LinkError
    ├── KernelError          the kernel rejected a request, or did not answer
    ├── LinkExistsError      a link name of the plan is already taken
    ├── NetnsError           not a network namespace, or it cannot be entered
    ├── NotReadyError        nested mode: a link is down, or a MAC address still in use
    ├── ParentNotFoundError  nested mode: the parent interface does not exist
    └── SysctlError          a kernel setting cannot be written

Every message names the interface, the failed step, and the kernel's own error text.
"""


class LinkError(Exception):
    """An interface could not be created, removed or read."""


class KernelError(LinkError):
    """The kernel rejected a request: `errno` is its error number, `what` describes the request."""

    def __init__(self, what: str, errno: int, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.errno = errno


class LinkExistsError(LinkError):
    """A link of this name already exists, on `side` "host" or "sandbox". It is left unchanged."""

    def __init__(self, interface: str, name: str, side: str) -> None:
        super().__init__(f"{interface}: link {name} already exists ({side} side)")
        self.name = name
        self.side = side


class NetnsError(LinkError):
    """The path or descriptor is not a network namespace, or the process may not enter it."""


class NotReadyError(LinkError):
    """A link that somebody else manages is down, or an older sandbox still has the MAC address: may pass."""


class ParentNotFoundError(LinkError):
    """The parent interface of nested mode does not exist."""


class SysctlError(LinkError):
    """A kernel setting does not exist or cannot be written; the message contains its key and its path."""
