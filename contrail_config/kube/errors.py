"""What the Kubernetes API answers when it does not do as asked.

    KubeError                      anything that is not one of these, such as an answer that cannot be read
     ├─ KubeConfigurationError     how to reach the server is not known: kubeconfig, token, certificate, plugin
     ├─ KubeUnauthorizedError      401: the server does not know who asks
     ├─ KubeForbiddenError         403: who asks may not do this
     ├─ KubeNotFoundError          404: no such object, or no such kind
     ├─ KubeExistsError            409: the name is taken
     ├─ KubeConflictError          409: the object is not in the state that was stated
     ├─ KubeGoneError              410: the resourceVersion is too old to go on from
     ├─ KubeInvalidError           422: the body is wrong, or another uid's
     ├─ KubeLeadershipLostError    this process does not lead, or no longer
     └─ KubeUnavailableError       no answer, or 5xx: the same may well be answered later
         └─ KubeThrottledError     429: the server did not begin with it

Messages name the request; bodies appear in them only as the server's own Status and cut short, since a body may hold
secrets. The cause is chained.
"""

import msgspec

LONGEST_MESSAGE = 512


class Cause(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that is wrong, `field` as a path in the object."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """What a Status says of its object."""

    name: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: float = 0.0


class KubeError(Exception):
    """Root of everything that this client raises. `status` is 0 where there was no answer."""

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", details: Details | None = None, retry_after: float = 0
    ) -> None:
        super().__init__(message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}...")
        self.status = status
        self.reason = reason
        self.details = details
        self.retry_after = retry_after
        """Seconds that the server asks to wait, 0 if it said nothing."""


class KubeConfigurationError(KubeError):
    """The configuration does not tell how to reach the server; the message names file and key."""


class KubeUnauthorizedError(KubeError):
    """The server does not know who asks, though credentials were read anew."""


class KubeForbiddenError(KubeError):
    """Who asks may not do this."""


class KubeNotFoundError(KubeError):
    """The object is not there, or its kind is not served."""


class KubeExistsError(KubeError):
    """An object of this name is there already."""


class KubeConflictError(KubeError):
    """The object changed meanwhile, or is another one than was stated (resourceVersion, uid)."""


class KubeGoneError(KubeError):
    """The history that was asked for is no longer kept: list anew."""


class KubeInvalidError(KubeError):
    """The server finds the body wrong; `details` names the fields. A patch for another uid ends so, too."""


class KubeLeadershipLostError(KubeError):
    """Another process may lead by now: this one may not write."""


class KubeUnavailableError(KubeError):
    """No answer, or one that says that the server failed; a write may or may not have been done."""


class KubeThrottledError(KubeUnavailableError):
    """The server has too much to do and did not begin with this."""
