"""Values that stand in the configuration or in files beside it, which somebody may change while we run.

Files are read again every few seconds, so a token or certificate that rotates counts soon, and at once when the server
refused the old one. A file that cannot be read again leaves what was read before; see also `last_usable`.
"""

import asyncio
import logging
import math
import time
from typing import Protocol

from contrail_config.kube.errors import KubeConfigurationError

log = logging.getLogger(__name__)

PERIOD = 10.0
"""Seconds for which a file's contents are believed."""


class ValueSource(Protocol):
    """A value; `origin` names file and key in errors."""

    origin: str

    async def read(self) -> bytes:
        """Returns the value. Raises KubeConfigurationError."""

    def forget(self) -> bool:
        """Has it read anew next time; False if it can only be the same."""


class InlineValue:
    """A value that stands in the configuration."""

    def __init__(self, content: bytes, origin: str) -> None:
        self.origin = origin
        self._content = content

    async def read(self) -> bytes:
        """Returns the value."""
        return self._content

    def forget(self) -> bool:
        """It can only be the same."""
        return False


class FileValue:
    """A value that is the contents of a file."""

    def __init__(self, path: str, origin: str) -> None:
        self.origin = f"{origin}: {path}"
        self._path = path
        self._content: bytes | None = None
        self._read_at = -math.inf

    async def read(self) -> bytes:
        """Returns the contents. Raises KubeConfigurationError."""
        if self._content is None or time.monotonic() - self._read_at >= PERIOD:
            self._content = await asyncio.to_thread(self._load)
            self._read_at = time.monotonic()
        return self._content

    def forget(self) -> bool:
        """Has it read anew next time."""
        self._read_at = -math.inf
        return True

    def _load(self) -> bytes:
        try:
            with open(self._path, "rb") as file:
                return file.read()
        except OSError as error:
            if self._content is None:
                raise KubeConfigurationError(f"{self.origin}: {error.strerror}") from error
            log.warning("%s cannot be read again, the old contents go on: %s", self._path, error.strerror)
            return self._content
