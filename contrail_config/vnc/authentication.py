"""Authentication of requests: none, or basic authentication, as on the server's local port 8095."""

import base64
from collections.abc import Mapping
from typing import Protocol

from contrail_config.vnc.credential_files import Password


class Authentication(Protocol):
    """Provider of the headers that authenticate a request. It is called for each request, so it caches."""

    async def headers(self) -> Mapping[str, str]:
        """Returns the headers. Raises VncError."""

    def renew(self, rejected: Mapping[str, str]) -> bool:
        """Drops what the server rejected with 401; returns False if the next headers cannot be others."""

    async def close(self) -> None:
        """Stops a request for a token."""


class NoAuthentication:
    """For servers with `aaa_mode = no-auth`."""

    async def headers(self) -> Mapping[str, str]:
        """Returns no header."""
        return {}

    def renew(self, _rejected: Mapping[str, str]) -> bool:
        """Returns False."""
        return False

    async def close(self) -> None:
        """Does nothing."""


class BasicAuthentication:
    """User and password in each request."""

    def __init__(self, user: str, password: Password) -> None:
        self._user = user
        self._password = password

    async def headers(self) -> Mapping[str, str]:
        """Returns the header. Raises VncConfigurationError if the password could never be read."""
        encoded = base64.b64encode(f"{self._user}:{await self._password.current()}".encode()).decode()
        return {"Authorization": f"Basic {encoded}"}

    def renew(self, _rejected: Mapping[str, str]) -> bool:
        """Makes the next headers read the password again."""
        return self._password.invalidate()

    async def close(self) -> None:
        """Does nothing."""
