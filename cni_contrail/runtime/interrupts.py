"""What SIGINT and SIGTERM do: end an operation so that it leaves nothing running, at a moment when it can."""

import contextlib
import signal
import threading
from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Has SIGINT and SIGTERM that arrive meanwhile take effect at the end; outside the main thread none arrives.

    For where what was begun would be lost: between a process's start and the moment it is known.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    handlers = {number: signal.signal(number, lambda number, _frame: arrived.append(number)) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for arrival in arrived:
            signal.raise_signal(arrival)


@contextlib.contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Has SIGTERM raise KeyboardInterrupt meanwhile, as SIGINT does; outside the main thread neither arrives."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
