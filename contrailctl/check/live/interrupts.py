"""SIGINT, SIGTERM and SIGHUP as cancellation of the current task, so that it removes what it has created."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interrupts_cancel() -> Iterator[None]:
    """Cancels the current task at each signal: a second one cancels the clean-up after the first.

    SIGHUP is sent by both kernel and shell when a terminal goes away, so it cancels only what no signal has cancelled
    yet. Where it is ignored, as under nohup, it stays so.

    Raises KeyboardInterrupt instead of the cancellation. A no-op outside the main thread, which receives no signals.
    """
    task = asyncio.current_task()
    if task is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def hang_up() -> None:
        if not task.cancelling():
            task.cancel()

    before = {number: signal.getsignal(number) for number in (*_SIGNALS, signal.SIGHUP)}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]
    for number in before:
        loop.add_signal_handler(number, hang_up if number == signal.SIGHUP else task.cancel)
    try:
        yield
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
