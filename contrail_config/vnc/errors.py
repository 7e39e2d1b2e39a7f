"""Errors of the client of the Contrail API server.

    VncError                     root, and an answer that no other class describes
     ├─ VncConfigurationError    certificate, password or URL cannot be used
     ├─ VncUnauthorizedError     401, although the token was renewed
     ├─ VncForbiddenError        403
     ├─ VncNotFoundError         404: object, name, parent or path
     ├─ VncExistsError           409: the name or the uuid exists; 400: the VXLAN id
     ├─ VncInUseError            409: referred objects, children, or addresses of a subnet
     ├─ VncAddressTakenError     400 and 409: the address is not available
     ├─ VncExhaustedError        400: no free address, or no subnet around the requested one
     ├─ VncRejectedError         400, 405, 412, 413, and 500 about a subnet: this request never succeeds
     ├─ VncServerError           500: an error in the server: a reference vanished, or a name exists twice
     └─ VncUnavailableError      no response, 502, 504: a retry may succeed, and the outcome of a write is unknown
         └─ VncOverloadedError   429, 503 and 500 about RabbitMQ: the server did nothing

Messages name the request and hold the server's text, cut short; never a body, which may hold secrets.
"""

MAX_MESSAGE_LENGTH = 512


class VncError(Exception):
    """Root of all errors of this client. `status` is 0 if there was no response."""

    def __init__(self, message: str, *, status: int = 0, retry_after: float = 0.0) -> None:
        super().__init__(message if len(message) <= MAX_MESSAGE_LENGTH else f"{message[:MAX_MESSAGE_LENGTH]}...")
        self.status = status
        self.retry_after = retry_after
        """Seconds that the server asks to wait, 0 if it asks for none."""


class VncConfigurationError(VncError):
    """The client's configuration cannot be used."""


class VncUnauthorizedError(VncError):
    """Not authenticated, although the token was renewed."""


class VncForbiddenError(VncError):
    """Permission denied."""


class VncNotFoundError(VncError):
    """The object, the name, its parent or the path does not exist."""


class VncExistsError(VncError):
    """Another object has the name or the uuid; perhaps the caller's own, whose response was lost."""


class VncInUseError(VncError):
    """The object is referred to or has children, or addresses of the subnet are in use."""


class VncAddressTakenError(VncError):
    """The requested address is reserved, or another instance-ip has it."""


class VncExhaustedError(VncError):
    """The network has no free address, or no subnet around the requested one."""


class VncRejectedError(VncError):
    """The request is invalid: it never succeeds."""


class VncServerError(VncError):
    """The server failed at the request, because a reference vanished meanwhile, or a name exists twice."""


class VncUnavailableError(VncError):
    """No response, or one of a balancer; the outcome of a write is unknown."""


class VncOverloadedError(VncUnavailableError):
    """The server is overloaded or starting, and did nothing."""
