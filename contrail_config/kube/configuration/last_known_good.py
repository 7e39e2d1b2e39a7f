"""Last known good value: built from sources that may change, and kept while they are unusable.

A file may be read while it is being rewritten, empty or half written. A value that cannot be built is read again on the
next call, and until it can be built the previous one is used.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from contrail_config.kube.configuration.value_source import ValueSource
from contrail_config.kube.errors import KubeConfigurationError
from contrail_config.kube.rate_limited_warning import RateLimitedWarning

S = TypeVar("S")


class LastKnownGood(Generic[S]):
    """Value built from the contents of `sources` by `build`, in a thread; it raises KubeConfigurationError."""

    def __init__(self, build: Callable[..., S], *sources: ValueSource) -> None:
        self._build = build
        self._sources = sources
        self._built: tuple[list[bytes], S] | None = None  # contents, and the value built from them
        self._origin = sources[0].origin
        self._warning = RateLimitedWarning(self._origin)

    async def current(self) -> S:
        """Returns the value, the same object until the contents change.

        Raises KubeConfigurationError if none could be built yet.
        """
        try:
            value = await self._refreshed()
        except KubeConfigurationError as error:
            self.invalidate()  # the file is probably being rewritten: do not cache its contents
            if self._built is None:
                raise
            self._warning.warn(f"using the previous contents: {str(error).removeprefix(f'{self._origin}: ')}")
            return self._built[1]
        self._warning.clear()
        return value

    def invalidate(self) -> bool:
        """Makes the next call read all sources again; returns False if none of them can change."""
        invalidated = [source.invalidate() for source in self._sources]
        return any(invalidated)

    async def _refreshed(self) -> S:
        contents = [await source.read() for source in self._sources]
        if self._built is None or self._built[0] != contents:
            self._built = contents, await asyncio.to_thread(self._build, *contents)
        return self._built[1]
