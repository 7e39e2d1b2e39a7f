"""Optimistic concurrency: retries a read-modify-write after a conflict, like client-go's RetryOnConflict.

tenacity fits here: the number of attempts is limited, and it costs 30 us for each write of an object. `Backoff` of the
Kubernetes client is for retries without a limit and for those of every request.
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
    """Returns an iterable of attempts; each one is a context manager around a read and a write.

    Retries `conflicts` (default: KubeConflictError), at first after 2.5 to 5 ms and finally after up to 0.5 s. Other
    errors are raised at once. Raises StoreUnavailableError naming `what` after the last attempt.
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
