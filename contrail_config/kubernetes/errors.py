"""Maps what the Kubernetes client raises to what a store raises: the one place where that is done.

Whatever keeps the server from answering, or us from being answered, makes the store unavailable: it is tried again.
"""

import contextlib
from collections.abc import Iterator

from contrail_config.errors import ConflictError, NotFoundError, StoreError, StoreUnavailableError
from contrail_config.kube.errors import (
    KubeConflictError,
    KubeError,
    KubeExistsError,
    KubeInvalidError,
    KubeNotFoundError,
)

_KINDS: tuple[tuple[type[KubeError], type[StoreError]], ...] = (
    (KubeNotFoundError, NotFoundError),
    (KubeExistsError, ConflictError),
    (KubeConflictError, ConflictError),
    (KubeInvalidError, StoreError),
)


def store_error(error: KubeError, what: str) -> StoreError:
    """Returns what callers are told, chained to its cause; `what` names the object."""
    kind = next((kind for kube, kind in _KINDS if isinstance(error, kube)), StoreUnavailableError)
    told = kind(f"{what}: {error}")
    told.__cause__ = error
    return told


@contextlib.contextmanager
def as_store_error(what: str) -> Iterator[None]:
    """Raises StoreError instead of KubeError; `what` names the object."""
    try:
        yield
    except KubeError as error:
        raise store_error(error, what) from error
