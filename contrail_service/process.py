"""Service process: runs until SIGTERM or SIGINT, and maps start-up errors to exit statuses.

A signal cancels the service's task, so that each part cleans up in its `finally`. What has not finished within the
grace period is abandoned, as the supervisor's SIGKILL would come next. This is logged, and the exit status is 0 as for
any requested stop: a hanging write must not fail a rollout, and the next start converges.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine

from contrail_service.errors import RestartError, ServiceError
from contrail_service.file_limit import raise_file_limit
from contrail_service.file_limit_errors import FileLimitErrors

STOP_GRACE = 4.5
"""Seconds from the signal to the end of the process."""

EXIT_FAILED = 1
EXIT_WRONG_USE = 2

log = logging.getLogger(__name__)


def run_service(service: Callable[[], Coroutine[None, None, None]], *, program: str) -> int:
    """Runs the service and returns the exit status.

    0: stopped by a signal; 1: crashed, or needs a restart; 2: cannot start as configured.
    """
    raise_file_limit()
    _tune_garbage_collection()
    try:
        asyncio.run(_until_signal(service()))
    except Exception as error:
        cause = _service_error(error)
        if cause is None:
            log.exception("%s: crashed", program)
            return EXIT_FAILED
        print(f"{program}: {cause}", file=sys.stderr)  # noqa: T201 - the last message, not a log record
        return EXIT_FAILED if isinstance(cause, RestartError) else EXIT_WRONG_USE
    return 0


def _tune_garbage_collection() -> None:
    """Makes Python search for unreachable cycles after 20,000 new objects instead of 700, without its own modules.

    With the defaults, a service that caches a hundred thousand pods stalls for seconds at a time, to find next to
    nothing: a quarter of a manager's processor time.
    """
    gc.freeze()  # moves the modules loaded so far out of the collector's sight
    gc.set_threshold(20_000, 20, 50)


def _service_error(error: Exception) -> ServiceError | None:
    """Returns the ServiceError that ended the service, also from within a task group; None for a bug."""
    if isinstance(error, ExceptionGroup):
        found = (_service_error(inner) for inner in error.exceptions)
        return next((cause for cause in found if cause is not None), None)
    return error if isinstance(error, ServiceError) else None


async def _until_signal(service: Coroutine[None, None, None]) -> None:
    task = asyncio.create_task(service)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(FileLimitErrors().handle)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, task, number.name)
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():  # not by the signal: this coroutine itself was cancelled
            raise


def _stop(task: asyncio.Task[None], name: str) -> None:
    if task.cancelling():  # a second signal must not cancel the clean-up
        return
    log.info("stopping on %s", name)
    task.cancel()
    asyncio.get_running_loop().call_later(STOP_GRACE, _abandon)


def _abandon() -> None:
    log.warning("shutdown: timed out after %s s, exiting without the rest of the clean-up", STOP_GRACE)
    sys.stderr.flush()
    os._exit(0)  # `sys.exit` would wait for threads, which may hang as well
