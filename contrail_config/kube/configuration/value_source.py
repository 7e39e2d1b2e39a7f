"""Value sources: values that are configured inline, or in files that may change while the process runs.

Files are read again every few seconds, so a rotated token or certificate takes effect soon, and at once after the
server rejected the old one. If a file cannot be read again, its previous contents are used; see also `last_known_good`.
"""

import asyncio
import logging
import math
import time
from typing import Protocol

from contrail_config.kube.errors import KubeConfigurationError

log = logging.getLogger(__name__)

REFRESH_INTERVAL = 10.0
"""Seconds for which a file's contents are cached."""


class ValueSource(Protocol):
    """Source of one value; `origin` names it in errors."""

    origin: str

    async def read(self) -> bytes:
        """Returns the value. Raises KubeConfigurationError."""

    def invalidate(self) -> bool:
        """Makes the next call read the value again; returns False if it cannot change."""


class InlineValue:
    """Value that is part of the configuration."""

    def __init__(self, content: bytes, origin: str) -> None:
        self.origin = origin
        self._content = content

    async def read(self) -> bytes:
        """Returns the value."""
        return self._content

    def invalidate(self) -> bool:
        """Returns False: the value cannot change."""
        return False


class FileValue:
    """Value that is the contents of a file."""

    def __init__(self, path: str, origin: str) -> None:
        self.origin = f"{origin}: {path}"
        self._path = path
        self._content: bytes | None = None
        self._read_at = -math.inf

    async def read(self) -> bytes:
        """Returns the contents. Raises KubeConfigurationError if they could never be read."""
        if self._content is None or time.monotonic() - self._read_at >= REFRESH_INTERVAL:
            self._content = await asyncio.to_thread(self._load)
            self._read_at = time.monotonic()
        return self._content

    def invalidate(self) -> bool:
        """Makes the next call read the file again."""
        self._read_at = -math.inf
        return True

    def _load(self) -> bytes:
        try:
            with open(self._path, "rb") as file:
                return file.read()
        except OSError as error:
            # kubelet replaces mounted files by renaming a symlink, but other tools delete and recreate them
            if self._content is None:
                raise KubeConfigurationError(f"{self.origin}: {error.strerror}") from error
            log.warning("%s: cannot be read, using the previous contents: %s", self._path, error.strerror)
            return self._content
