"""Keystone v3: password tokens, with an expiry that tests set."""

import asyncio
import secrets
import ssl
from datetime import UTC, datetime, timedelta

import msgspec
from aiohttp import web

from tests.support.contrail_api.stored import Object


class Keystone:
    """Identity service with one user. `requests` are the bodies so far, `failures` statuses of the next responses."""

    def __init__(
        self,
        *,
        user: str = "admin",
        password: str = "contrail123",
        roles: tuple[str, ...] = ("admin",),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.user = user
        self.password = password
        self.lifetime = timedelta(hours=1)
        self.ahead = timedelta()  # of the system time
        self.failures: list[int] = []
        self.hung = False
        self.requests: list[Object] = []
        self.port = 0
        self._roles = roles
        self._tls = tls
        self._tokens: set[str] = set()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v3"

    def roles(self, token: str) -> tuple[str, ...] | None:
        """Returns the roles of a token, None if it is not valid."""
        return self._roles if token in self._tokens else None

    def issue(self) -> str:
        """Returns a new token."""
        token = secrets.token_urlsafe(24)
        self._tokens.add(token)
        return token

    def revoke_all(self) -> None:
        """Makes every token so far invalid."""
        self._tokens.clear()

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/v3/auth/tokens", self._issue)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _issue(self, request: web.Request) -> web.Response:
        body: Object = msgspec.json.decode(await request.read())
        self.requests.append(body)
        if self.hung:
            await asyncio.Event().wait()
        if self.failures:
            return _error(
                self.failures.pop(0), "An unexpected error prevented the server from fulfilling your request."
            )
        user = body["auth"]["identity"]["password"]["user"]
        if (user["name"], user["password"]) != (self.user, self.password):
            return _error(401, "The request you have made requires authentication.")
        token = self.issue()
        now = datetime.now(UTC) + self.ahead
        times = {"issued_at": _text(now), "expires_at": _text(now + self.lifetime)}
        answer = {"token": {**times, "methods": ["password"], "user": {"name": user["name"]}}}
        return web.json_response(answer, status=201, headers={"X-Subject-Token": token})


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"code": status, "message": message}}, status=status)
