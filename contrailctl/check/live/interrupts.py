"""SIGINT and SIGTERM as cancellation of the current task, so that what it has created is removed before it ends."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interrupts_cancel() -> Iterator[None]:
    """Cancels the current task at each signal: a second one cancels the clean-up after the first.

    Raises KeyboardInterrupt instead of the cancellation. A no-op outside the main thread, which receives no signals.
    """
    task = asyncio.current_task()
    if task is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, task.cancel)
    try:
        yield
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
