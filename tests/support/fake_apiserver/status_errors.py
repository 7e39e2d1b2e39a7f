"""Error responses: Kubernetes Status objects."""

from typing import Any

from tests.support.fake_apiserver.kinds import Kind


class StatusError(Exception):
    """Sent as a Status response."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry_after = retry_after
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


class UnknownPathError(Exception):
    """Sent as a plain text 404, as for every unserved path."""


def not_found(kind: Kind, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{kind.qualified} "{name}" not found', details=_about(kind, name))


def already_exists(kind: Kind, name: str) -> StatusError:
    return StatusError(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', details=_about(kind, name))


def conflict(kind: Kind, name: str, why: str = "the object has been modified") -> StatusError:
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_about(kind, name))


def invalid(kind: Kind, name: str, field: str, why: str) -> StatusError:
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    message = f'{kind.kind}.{kind.group} "{name}" is invalid: {field}: {why}'
    return StatusError(422, "Invalid", message, details={**_about(kind, name), "causes": causes})


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def future_version(wanted: int, current: int) -> StatusError:
    """The watch cache has not reached the version within 3 s."""
    message = f"Too large resource version: {wanted}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return StatusError(504, "Timeout", message, details={"causes": causes, "retryAfterSeconds": 1})


def _about(kind: Kind, name: str) -> dict[str, Any]:
    return {"name": name, "group": kind.group, "kind": kind.plural}
