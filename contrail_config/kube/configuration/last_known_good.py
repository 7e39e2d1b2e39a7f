"""What was made of values that may change, as it was when they could last be used.

A file may be read in the moment in which somebody rewrites it, empty or half written. So what cannot be used is read
again the next time that it is asked for, and until it can, what was made before goes on.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from contrail_config.kube.configuration.value_source import ValueSource
from contrail_config.kube.errors import KubeConfigurationError
from contrail_config.kube.rate_limited_warning import RateLimitedWarning

S = TypeVar("S")


class LastKnownGood(Generic[S]):
    """What `make`, in a thread, makes of the contents of `materials`. It raises KubeConfigurationError if it cannot."""

    def __init__(self, make: Callable[..., S], *materials: ValueSource) -> None:
        self._make = make
        self._materials = materials
        self._made: tuple[list[bytes], S] | None = None  # of what, and what
        self._origin = materials[0].origin
        self._complaint = RateLimitedWarning(self._origin)

    async def current(self) -> S:
        """Returns the same as before as long as the contents are. Raises KubeConfigurationError if there is nothing."""
        try:
            made = await self._renewed()
        except KubeConfigurationError as error:
            self.forget()
            if self._made is None:
                raise
            self._complaint.go_on(f"what was read before goes on: {str(error).removeprefix(f'{self._origin}: ')}")
            return self._made[1]
        self._complaint.end()
        return made

    def forget(self) -> bool:
        """Has everything read anew next time; False if it can only be the same."""
        forgotten = [material.forget() for material in self._materials]
        return any(forgotten)

    async def _renewed(self) -> S:
        contents = [await material.read() for material in self._materials]
        if self._made is None or self._made[0] != contents:
            self._made = contents, await asyncio.to_thread(self._make, *contents)
        return self._made[1]
