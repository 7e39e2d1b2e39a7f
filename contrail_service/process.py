"""Runs a service until SIGTERM or SIGINT, and maps what keeps it from starting to an exit status.

On a signal the service's task is cancelled, so that each part cleans up in its `finally`; what has not ended within the
grace period is abandoned, since a supervisor's SIGKILL would come next. A log line says so, and the exit status is 0 as
for any stop that was asked for: a write that hangs fails no roll-out, and whatever starts next converges.
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

STOP_GRACE = 4.5
"""Seconds from the signal to the end of the process, whatever still runs."""

EXIT_FAILED = 1
EXIT_WRONG_USE = 2

log = logging.getLogger(__name__)


def run_service(service: Callable[[], Coroutine[None, None, None]], *, program: str) -> int:
    """Runs the service and returns the exit status.

    0: stopped by a signal, 1: died, or has to be started anew, 2: could not start as configured.
    """
    raise_file_limit()
    _collect_garbage_seldom()
    try:
        asyncio.run(_until_signal(service()))
    except Exception as error:
        refusal = _refusal(error)
        if refusal is None:
            log.exception("%s died", program)
            return EXIT_FAILED
        print(f"{program}: {refusal}", file=sys.stderr)  # noqa: T201 - the last message, and no line of the log
        return EXIT_FAILED if isinstance(refusal, RestartError) else EXIT_WRONG_USE
    return 0


def _collect_garbage_seldom() -> None:
    """Has Python look for unreachable cycles after 20,000 new objects, not 700, and leave its own modules out of it.

    A service that keeps a hundred thousand pods is else stopped for seconds again and again, to find next to nothing:
    it took a quarter of a manager's processor time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _refusal(error: Exception) -> ServiceError | None:
    """Returns what ended the service in an orderly way, also if a task of a group found it; None: it died of a bug."""
    if isinstance(error, ExceptionGroup):
        found = (_refusal(inner) for inner in error.exceptions)
        return next((refusal for refusal in found if refusal is not None), None)
    return error if isinstance(error, ServiceError) else None


async def _until_signal(service: Coroutine[None, None, None]) -> None:
    task = asyncio.create_task(service)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, task, number.name)
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise


def _stop(task: asyncio.Task[None], name: str) -> None:
    if task.cancelling():
        return
    log.info("stopping on %s", name)
    task.cancel()
    asyncio.get_running_loop().call_later(STOP_GRACE, _abandon)


def _abandon() -> None:
    log.warning("not everything ended within %s s: the rest is left to the next start", STOP_GRACE)
    sys.stderr.flush()
    os._exit(0)
