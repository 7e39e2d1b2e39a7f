"""Wall clock of the Contrail API server, by which all managers agree when a hold ends, whatever their own clocks say.

The time is that of the first answer (`Date`, RFC 9110, section 6.6.1), in whole seconds, and then goes on by the clock
of this process that nobody sets. Before an answer, and with a server that sends no time, it is that of this machine.
"""

import time
from email.utils import parsedate_to_datetime


class ServerClock:
    """Returns seconds since the epoch when it is called."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()
        self._is_set = False

    def __call__(self) -> float:
        """Returns seconds since the epoch."""
        return self._offset + time.monotonic()

    def answered(self, date: str | None) -> None:
        """Notes the time of an answer. Only the first counts: no hold ends early if the server's time is changed."""
        if self._is_set or date is None:
            return
        try:
            seconds = parsedate_to_datetime(date).timestamp()
        except ValueError:
            return  # no time of HTTP: as none
        self._offset = seconds - time.monotonic()
        self._is_set = True
