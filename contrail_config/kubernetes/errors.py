"""Maps errors of the Kubernetes client to store errors. This is the only place that does so.

An error that has no other mapping makes the store unavailable: callers retry.
"""

import contextlib
from collections.abc import Iterator

from contrail_config.errors import ConflictError, NotFoundError, StoreError, StoreRejectedError, StoreUnavailableError
from contrail_config.kube.errors import (
    KubeConflictError,
    KubeError,
    KubeExistsError,
    KubeForbiddenError,
    KubeInvalidError,
    KubeNotFoundError,
)

_KINDS: tuple[tuple[type[KubeError], type[StoreError]], ...] = (
    (KubeNotFoundError, NotFoundError),
    (KubeExistsError, ConflictError),
    (KubeConflictError, ConflictError),
    (KubeForbiddenError, StoreRejectedError),
    (KubeInvalidError, StoreRejectedError),
)
_REJECTED = (400, 413)  # by an admission webhook; too large


def store_error(error: KubeError, what: str) -> StoreError:
    """Returns the store error for callers, chained to its cause; `what` names the object."""
    mapped = _kind(error)(f"{what}: {error}")
    mapped.__cause__ = error
    return mapped


def _kind(error: KubeError) -> type[StoreError]:
    if error.status in _REJECTED:
        return StoreRejectedError
    return next((kind for kube, kind in _KINDS if isinstance(error, kube)), StoreUnavailableError)


@contextlib.contextmanager
def as_store_error(what: str) -> Iterator[None]:
    """Maps KubeError to StoreError; `what` names the object."""
    try:
        yield
    except KubeError as error:
        raise store_error(error, what) from error
