"""Hold timer: frees held addresses when their hold ends.

Holds are on the server, with their end in seconds since the epoch, so those of an earlier process or of another manager
end in time too. What managers read from the server's clock may differ by a second: holds then end as much earlier or
later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

from contrail_config.errors import StoreError
from contrail_config.kube.backoff import Backoff
from contrail_config.vnc.address_cache import AddressCache
from contrail_config.vnc.holds import Clock

log = logging.getLogger(__name__)

LONGEST_WAIT: Final = 60.0
"""Seconds after which the clock is read again, if no hold ends before."""

_SHORTEST_WAIT: Final = 0.01  # seconds: holds that end at nearly the same time are freed together


class HoldTimer:
    """Calls `expire` when the earliest hold ends. `clock` returns seconds since the epoch."""

    def __init__(self, addresses: AddressCache, clock: Clock, expire: Callable[[], Awaitable[None]]) -> None:
        self._addresses = addresses
        self._clock = clock
        self._expire = expire
        self._backoff = Backoff(first=0.2, longest=30.0)

    async def run(self) -> NoReturn:
        """Runs until it is cancelled. What cannot be freed is tried again with back-off."""
        while True:
            await self._wait_until_due()
            try:
                await self._expire()
            except StoreError as error:
                log.warning("held addresses cannot be freed: %s", error)
                await asyncio.sleep(self._backoff.next_pause())
            else:
                self._backoff.reset()

    async def _wait_until_due(self) -> None:
        while (left := self._left()) > 0:
            self._addresses.earlier_hold.clear()
            try:
                async with asyncio.timeout(min(max(left, _SHORTEST_WAIT), LONGEST_WAIT)):
                    await self._addresses.earlier_hold.wait()
            except TimeoutError:
                continue

    def _left(self) -> float:
        """Returns the seconds until the earliest hold ends."""
        ends = self._addresses.next_hold_end()
        return LONGEST_WAIT if ends is None else ends - self._clock()
