"""What `/metrics` tells of the agent, in the registry of whoever composes the process."""

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds."""

_UNKNOWN = "unknown"  # one label for whatever method and path a client makes up
_HUNG_UP = "hung up"

_waited: ContextVar[float] = ContextVar("waited")


@contextlib.contextmanager
def time_not_counted() -> Iterator[None]:
    """What a request spends inside is its own wish to wait, and left out of its duration."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        _waited.set(time.perf_counter() - begin)


class Metrics:
    """The agent's metrics; made once per registry."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        machines: Callable[[], float],
        ports: Callable[[], float],
        waiting: Callable[[], float],
    ) -> None:
        self._requests = Counter(
            "contrail_agent_requests",
            "Requests by method, route and status; a client that hung up first has no status.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "contrail_agent_request_seconds",
            "Time to an answer, without the time that a request asked to wait.",
            ["route"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._known: dict[tuple[str, str, int | str], tuple[Counter, Histogram]] = {}
        for name, documentation, value in (
            ("contrail_agent_machines", "Machines of this node.", machines),
            ("contrail_agent_ports", "Ports that are plugged.", ports),
            ("contrail_agent_waiting_requests", "Requests that wait for a pod's list.", waiting),
        ):
            Gauge(name, documentation, registry=registry).set_function(value)

    def middleware(self) -> Middleware:
        """Returns the middleware that counts requests: the outermost one, so that it sees every status."""

        @web.middleware
        async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
            begin = time.perf_counter()
            _waited.set(0.0)
            status: int | str = _HUNG_UP
            try:
                response = await handler(request)
                status = response.status
            finally:
                resource = request.match_info.route.resource
                method, route = (request.method, resource.canonical) if resource else (_UNKNOWN, _UNKNOWN)
                self.count(method, route, status, time.perf_counter() - begin - _waited.get())
            return response

        return count

    def count(self, method: str, route: str, status: int | str, seconds: float) -> None:
        """Counts a request of a route, which is a path with names in braces."""
        key = (method, route, status)
        if key not in self._known:  # to look a child up by its labels takes longer than all else here
            self._known[key] = self._requests.labels(*key), self._seconds.labels(key[1])
        requests, duration = self._known[key]
        requests.inc()
        duration.observe(seconds)
