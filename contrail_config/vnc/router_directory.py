"""Directory of virtual routers: all of them, listed again after a while."""

import asyncio
import math
from typing import Final

from contrail_config.http_client.single_flight import SingleFlight
from contrail_config.vnc.client import Object, VncClient
from contrail_config.vnc.mapping.routers import FIELDS, KIND

MAX_AGE: Final = 10.0
"""Seconds for which a list is used: many nodes may be without virtual router, and look for one."""


class RouterDirectory:
    """One list serves all callers. `max_age` is in seconds."""

    def __init__(self, client: VncClient, *, max_age: float = MAX_AGE) -> None:
        self._client = client
        self.max_age = max_age
        self._listed: list[Object] = []
        self._listed_at = -math.inf
        self._lists = SingleFlight(self._list)

    async def all(self) -> list[Object]:
        """Returns the virtual routers, each with its name and address. Raises VncError."""
        if asyncio.get_running_loop().time() >= self._listed_at + self.max_age:
            await self._lists.do()
        return self._listed

    async def close(self) -> None:
        """Stops a list in progress."""
        await self._lists.close()

    async def _list(self) -> None:
        self._listed = await self._client.list_all(KIND, fields=FIELDS)
        self._listed_at = asyncio.get_running_loop().time()
