"""Errors of the Kubernetes client.

    KubeError                      root, and anything that is none of these, such as a response that cannot be decoded
     ├─ KubeConfigurationError     kubeconfig, token, certificate or exec plugin cannot be used
     ├─ KubeUnauthorizedError      401: not authenticated
     ├─ KubeForbiddenError         403: permission denied
     ├─ KubeNotFoundError          404: object not found, or its kind is not served
     ├─ KubeExistsError            409: already exists
     ├─ KubeConflictError          409: a precondition failed (resourceVersion, uid)
     ├─ KubeGoneError              410: the resourceVersion is too old
     ├─ KubeFutureVersionError     504: the resourceVersion is newer than the server's state
     ├─ KubeInvalidError           422: invalid object, or a patch that names another uid
     ├─ KubeLeadershipLostError    this process is not the leader, or no longer
     └─ KubeUnavailableError       no response, or 5xx: a retry may succeed
         └─ KubeThrottledError     429: not processed

Messages name the request. They never contain bodies, which may hold secrets, other than the server's own Status, cut
short. The cause is chained.
"""

import msgspec

MAX_MESSAGE_LENGTH = 512


class Cause(msgspec.Struct, frozen=True, rename="camel"):
    """One problem of an object; `field` is a path in it."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """`details` of a Status."""

    name: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: float = 0.0


class KubeError(Exception):
    """Root of all errors of this client. `status` is 0 if there was no response."""

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", details: Details | None = None, retry_after: float = 0
    ) -> None:
        super().__init__(message if len(message) <= MAX_MESSAGE_LENGTH else f"{message[:MAX_MESSAGE_LENGTH]}...")
        self.status = status
        self.reason = reason
        self.details = details
        self.retry_after = retry_after
        """Seconds that the server asks to wait, 0 if it asks for none."""


class KubeConfigurationError(KubeError):
    """The client configuration cannot be used; the message names file and key."""


class KubeUnauthorizedError(KubeError):
    """Not authenticated, although the credentials were reloaded."""


class KubeForbiddenError(KubeError):
    """Permission denied."""


class KubeNotFoundError(KubeError):
    """The object does not exist, or its kind is not served."""


class KubeExistsError(KubeError):
    """An object with this name already exists."""


class KubeConflictError(KubeError):
    """The object changed in the meantime or is another one: resourceVersion or uid do not match."""


class KubeGoneError(KubeError):
    """The requested history is no longer kept; list again."""


class KubeFutureVersionError(KubeError):
    """The server has not reached the requested resourceVersion: it is late, or its history started over."""


class KubeInvalidError(KubeError):
    """The object is invalid; `details` names the fields. A patch that names another uid fails with this one, too."""


class KubeLeadershipLostError(KubeError):
    """Another process may be the leader: this one must not write."""


class KubeUnavailableError(KubeError):
    """No response, or a server error; the outcome of a write is unknown."""


class KubeThrottledError(KubeUnavailableError):
    """The server is overloaded and did not process the request."""
