"""Why an interface could not be made, removed or read.

    LinkError
    ├── KernelError      the kernel refused a request, or did not answer
    ├── LinkExistsError  a name that the plan gives to a link is taken
    ├── NetnsError       no network namespace there, or it cannot be entered
    └── SysctlError      a kernel setting cannot be written

Every message names what was tried (interface and step) and the cause in the kernel's words.
"""


class LinkError(Exception):
    """An interface could not be made, removed or read."""


class KernelError(LinkError):
    """The kernel refused a request: `errno` is its error number, `what` the request in words."""

    def __init__(self, what: str, errno: int, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.errno = errno


class LinkExistsError(LinkError):
    """A link of this name exists already, on `side` "host" or "sandbox". It has been left as it was."""

    def __init__(self, interface: str, name: str, side: str) -> None:
        super().__init__(f"{interface}: a link named {name} exists already ({side} side)")
        self.name = name
        self.side = side


class NetnsError(LinkError):
    """The path or descriptor is no network namespace, or the process may not enter it."""


class SysctlError(LinkError):
    """A kernel setting is not there or cannot be written; the message names its key and its path."""
