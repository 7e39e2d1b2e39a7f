"""Maps errors of the client to store errors. This is the only place that does so.

An error that has no other mapping makes the store unavailable: callers retry.
"""

import contextlib
from collections.abc import Iterator
from typing import Final

from contrail_config.errors import (
    ConflictError,
    InUseError,
    NotFoundError,
    StoreError,
    StoreRejectedError,
    StoreUnavailableError,
)
from contrail_config.vnc.errors import (
    VncError,
    VncExistsError,
    VncForbiddenError,
    VncInUseError,
    VncNotFoundError,
    VncRejectedError,
    VncUnauthorizedError,
)

_KINDS: Final[tuple[tuple[type[VncError], type[StoreError]], ...]] = (
    (VncNotFoundError, NotFoundError),
    (VncExistsError, ConflictError),
    (VncInUseError, InUseError),
    (VncForbiddenError, StoreRejectedError),
    (VncUnauthorizedError, StoreRejectedError),
    (VncRejectedError, StoreRejectedError),
)


@contextlib.contextmanager
def as_store_error(what: str) -> Iterator[None]:
    """Maps VncError to StoreError; `what` names the object."""
    try:
        yield
    except VncError as error:
        kind = next((store for vnc, store in _KINDS if isinstance(error, vnc)), StoreUnavailableError)
        raise kind(f"{what}: {error}") from error
