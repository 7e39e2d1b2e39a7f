"""Optimistic concurrency: repeats a read-modify-write that met another writer's change, as client-go's RetryOnConflict.

tenacity fits here: the series ends, and it costs 30 us for each write of an object. `Backoff` of the Kubernetes client
is for what has no end, or is done for each request.
"""

from typing import Final, NoReturn

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random_exponential,
)

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.errors import KubeConflictError, KubeError

_ATTEMPTS: Final = 12


def retry_on_conflict(what: str, *conflicts: type[KubeError]) -> AsyncRetrying:
    """Returns the attempts at one operation, to be iterated; each is entered as a context and must begin with a read.

    `conflicts` are retried, KubeConflictError by default, after 2.5 to 5 ms at first and up to 0.5 s at last; other
    errors end the series. Raises StoreUnavailableError naming `what` after the last attempt.
    """

    def give_up(state: RetryCallState) -> NoReturn:
        error = state.outcome.exception() if state.outcome else None
        message = f"{what}: changed by other writers in each of {state.attempt_number} attempts"
        raise StoreUnavailableError(f"{message}: {error}" if str(error or "") else message) from error

    return AsyncRetrying(
        retry=retry_if_exception_type(conflicts or KubeConflictError),
        stop=stop_after_attempt(_ATTEMPTS),
        # half of the pause is fixed, half is random
        wait=wait_exponential(multiplier=0.0025, max=0.25) + wait_random_exponential(multiplier=0.0025, max=0.25),
        retry_error_callback=give_up,
    )
