"""Back-off of a stored request that was answered with an error: the times of its file say when it is due again.

The modification time is that of the next attempt, the change time that of the last one. So the back-off survives its
process, and needs no format. A clock that is set back costs at most one longest pause.
"""

import os
import time

_FIRST_PAUSE = 1.0  # seconds
_LONGEST_PAUSE = 60.0


def is_due(path: str) -> bool:
    """Returns whether the request in a file may be repeated now; also if the file does not exist."""
    try:
        remaining = os.stat(path).st_mtime - time.time()
    except FileNotFoundError:
        return True
    return not 0 < remaining <= _LONGEST_PAUSE


def postpone(path: str) -> None:
    """Postpones the next attempt by the next longer pause; raises `OSError`."""
    status = os.stat(path)
    due = time.time() + next_pause(status.st_mtime - status.st_ctime)
    os.utime(path, (due, due))


def next_pause(last: float) -> float:
    """Returns seconds: about twice the last pause, with jitter, from 1 s to 60 s."""
    from random import uniform  # most calls never wait, and the import takes as long as creating a veth pair

    pause = min(max(_FIRST_PAUSE, 2 * last), _LONGEST_PAUSE)
    return pause * uniform(0.75, 1)  # noqa: S311 - spreads load, keeps no secret
