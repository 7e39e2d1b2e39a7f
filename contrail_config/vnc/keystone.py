"""Keystone v3: tokens for user and password, renewed before they expire and after the server rejected one.

A token lasts from when it was requested for the time between its issue and its expiry, both by the clock of keystone: a
system time that is set, or is hours ahead of keystone's, neither ends a token early nor keeps one for longer.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import aiohttp
import msgspec

from contrail_config.http_client.connections import connection_problem
from contrail_config.http_client.single_flight import SingleFlight
from contrail_config.vnc.credential_files import Password, Tls, context_of
from contrail_config.vnc.errors import VncError, VncUnauthorizedError, VncUnavailableError

DEADLINE = 20.0
"""Seconds for one request of a token."""

EARLY = 60.0
"""Seconds before its expiry at which a token is renewed; half of its lifetime if that is shorter."""


class KeystoneUser(NamedTuple):
    """Who asks for a token of a project. `url` ends with `/v3`."""

    url: str
    user: str
    password: Password
    project: str = "admin"
    user_domain: str = "Default"
    project_domain: str = "Default"

    def __repr__(self) -> str:
        return f"KeystoneUser({self.url}, {self.user})"  # no password


class _TokenTimes(msgspec.Struct):
    expires_at: datetime
    issued_at: datetime | None = None


class _TokenBody(msgspec.Struct):
    token: _TokenTimes


class _Token(NamedTuple):
    """Times are those of the monotonic clock."""

    text: str
    renew_at: float
    expires_at: float


class KeystoneTokens:
    """`Authentication` by tokens. One request at a time, whatever the number of callers."""

    def __init__(
        self,
        user: KeystoneUser,
        session: aiohttp.ClientSession,
        *,
        tls: Tls | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._user = user
        self._session = session
        self._tls = tls
        self._clock = clock
        self._token: _Token | None = None
        self._requests = SingleFlight(self._request)

    async def headers(self) -> Mapping[str, str]:
        """Returns the header with a token that is valid, for a while if keystone answers. Raises VncError."""
        token = self._token
        if token is None or self._clock() >= token.renew_at:
            try:
                token = self._token = await self._requests.do()
            except VncUnavailableError:
                if token is None or token is not self._token or self._clock() >= token.expires_at:
                    raise
        return {"X-Auth-Token": token.text}

    def renew(self, rejected: Mapping[str, str]) -> bool:
        """Drops the token if it is the rejected one; another request may have renewed it meanwhile."""
        if self._token is not None and self._token.text == rejected.get("X-Auth-Token"):
            self._token = None
        return True

    async def close(self) -> None:
        """Stops a request for a token."""
        await self._requests.close()

    async def _request(self) -> _Token:
        where = f"POST {self._user.url}/auth/tokens"
        self._user.password.invalidate()  # asked rarely, and repeated wrong passwords may lock the user out
        password = await self._user.password.current()
        context = await context_of(self._tls)
        began = self._clock()
        try:
            async with (
                asyncio.timeout(DEADLINE),
                self._session.post(
                    f"{self._user.url.rstrip('/')}/auth/tokens",
                    data=msgspec.json.encode(_password_body(self._user, password)),
                    headers={"Content-Type": "application/json", "Accept": "application/json"},
                    ssl=context,
                    allow_redirects=False,  # a redirect would send the password to another server
                ) as response,
            ):
                body = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            if self._tls is not None:
                self._tls.invalidate()  # its authority may have rotated: the caller's retry reads it again
            raise VncUnavailableError(f"{where}: {connection_problem(error)}") from error
        if response.status not in (200, 201):
            raise _rejection(where, response.status)
        return self._read(where, response.headers.get("X-Subject-Token", ""), body, began=began)

    def _read(self, where: str, text: str, body: bytes, *, began: float) -> _Token:
        try:
            times = msgspec.json.decode(body, type=_TokenBody).token
        except msgspec.DecodeError as error:
            raise VncError(f"{where}: no token: {error}") from error
        if not text:
            raise VncError(f"{where}: no X-Subject-Token in the response")
        issued = datetime.now(UTC) if times.issued_at is None else times.issued_at.astimezone(UTC)
        lifetime = (times.expires_at.astimezone(UTC) - issued).total_seconds()
        return _Token(text, began + max(lifetime - EARLY, lifetime / 2), began + lifetime)


def _rejection(where: str, status: int) -> VncError:
    if status == 429 or status >= 500:
        return VncUnavailableError(f"{where}: {status}", status=status)
    return VncUnauthorizedError(f"{where}: {status}: user, password or project is wrong", status=status)


def _password_body(user: KeystoneUser, password: str) -> dict[str, Any]:
    identity = {"name": user.user, "domain": {"name": user.user_domain}, "password": password}
    return {
        "auth": {
            "identity": {"methods": ["password"], "password": {"user": identity}},
            "scope": {"project": {"name": user.project, "domain": {"name": user.project_domain}}},
        }
    }
