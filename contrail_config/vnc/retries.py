"""Retries of requests: back-off with jitter, no shorter than the server asks for, within one deadline."""

from typing import Final

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_delay, wait_random_exponential

from contrail_config.vnc.errors import VncError, VncUnavailableError

DEADLINE = 30.0
"""Seconds within which the attempts of one request start."""

MAX_RETRY_AFTER = 20.0
"""Cap, in seconds, of a pause that the server asks for."""

_BACKOFF: Final = wait_random_exponential(multiplier=0.2, max=4.0)


def retried(*, deadline: float = DEADLINE) -> AsyncRetrying:
    """Returns an iterable of attempts; each is a context manager around one request.

    Only VncUnavailableError is retried: every request may be sent twice, since a create that was done answers 409, a
    delete 404, and everything else has the same effect.
    """
    return AsyncRetrying(
        retry=retry_if_exception_type(VncUnavailableError), stop=stop_after_delay(deadline), wait=_pause, reraise=True
    )


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, VncError) else 0.0
    return max(_BACKOFF(state), min(asked, MAX_RETRY_AFTER))
