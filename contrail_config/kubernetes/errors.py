"""Maps what the Kubernetes client raises to what a store raises: the one place where that is done.

Whatever keeps the server from answering, or us from being answered, makes the store unavailable: it is tried again.
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
_REFUSED = (400, 413)  # an admission webhook's answer, and what is too large


def store_error(error: KubeError, what: str) -> StoreError:
    """Returns what callers are told, chained to its cause; `what` names the object."""
    told = _kind(error)(f"{what}: {error}")
    told.__cause__ = error
    return told


def _kind(error: KubeError) -> type[StoreError]:
    if error.status in _REFUSED:
        return StoreRejectedError
    return next((kind for kube, kind in _KINDS if isinstance(error, kube)), StoreUnavailableError)


@contextlib.contextmanager
def as_store_error(what: str) -> Iterator[None]:
    """Raises StoreError instead of KubeError; `what` names the object."""
    try:
        yield
    except KubeError as error:
        raise store_error(error, what) from error
