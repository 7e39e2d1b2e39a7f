"""Status responses: the table that maps them to the errors of this client."""

from collections.abc import Mapping

import msgspec

from contrail_config.kube.decoding import NOT_JSON
from contrail_config.kube.errors import (
    Details,
    KubeConflictError,
    KubeError,
    KubeExistsError,
    KubeForbiddenError,
    KubeFutureVersionError,
    KubeGoneError,
    KubeInvalidError,
    KubeNotFoundError,
    KubeThrottledError,
    KubeUnauthorizedError,
    KubeUnavailableError,
)

_KINDS: dict[int, type[KubeError]] = {
    401: KubeUnauthorizedError,
    403: KubeForbiddenError,
    404: KubeNotFoundError,
    409: KubeConflictError,
    410: KubeGoneError,
    422: KubeInvalidError,
    429: KubeThrottledError,
}


class Status(msgspec.Struct, frozen=True):
    """The server's response to a failed request (API conventions, "Response Status Kind")."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


def read_status(body: bytes | msgspec.Raw) -> Status:
    """Returns the Status in a body; an empty one if the body is anything else, which is never shown."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except NOT_JSON:
        return Status()
    return status if status.kind == "Status" else Status()


def status_error(request: str, code: int, status: Status, headers: Mapping[str, str]) -> KubeError:
    """Returns the error for a response; `request` names the request."""
    kind = _kind(code, status)
    text = ": ".join(part for part in (f"{code} {status.reason}".rstrip(), status.message) if part)
    wait = _seconds(headers.get("Retry-After", "")) or (status.details.retry_after_seconds if status.details else 0.0)
    return kind(f"{request}: {text}", status=code, reason=status.reason, details=status.details, retry_after=wait)


def _kind(code: int, status: Status) -> type[KubeError]:
    if status.reason == "AlreadyExists":  # 409, as a conflict
        return KubeExistsError
    if status.details and any(cause.reason == "ResourceVersionTooLarge" for cause in status.details.causes):
        return KubeFutureVersionError  # 504, as a timeout
    return _KINDS.get(code, KubeUnavailableError if code >= 500 else KubeError)


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() else 0.0
