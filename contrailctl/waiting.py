"""Progress of a command that blocks, from a thread; `contrailctl.progress` is for those with an event loop.

Nothing is written to what is no terminal, and nothing of a short command.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

from contrailctl.progress import CLEAR, INTERVAL, QUIET_SECONDS
from contrailctl.table import printable


@contextlib.contextmanager
def shown_while(stage: str) -> Iterator[None]:
    """Shows on standard error what the command does, each second until the context is left."""
    stream = sys.stderr
    if not stream.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show, args=(printable(stage), stream, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show(stage: str, stream: TextIO, ended: threading.Event) -> None:
    began = time.monotonic()
    if ended.wait(QUIET_SECONDS):
        return
    while True:
        stream.write(f"{CLEAR}{stage} ({time.monotonic() - began:.0f} s)")
        stream.flush()
        if ended.wait(INTERVAL):
            break
    stream.write(CLEAR)
    stream.flush()
