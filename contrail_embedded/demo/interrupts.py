"""Holds Ctrl-C back where it would leave something behind: until a started process is known, and while cleaning up."""

import contextlib
import signal
from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def clean_up_on_sigterm() -> None:
    """Has SIGTERM raise KeyboardInterrupt too, as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Raises KeyboardInterrupt at the end if one of the signals arrived meanwhile. For the main thread alone."""
    arrived: list[int] = []
    handlers = {number: signal.signal(number, lambda number, _frame: arrived.append(number)) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if arrived:
        raise KeyboardInterrupt
