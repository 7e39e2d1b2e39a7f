"""Prometheus metrics of the agent, in the registry of its process."""

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds."""

_UNKNOWN = "unknown"  # a single label, as clients may send arbitrary methods and paths
_DISCONNECTED = "hung up"  # value of the label `status`

_waited: ContextVar[float] = ContextVar("waited")


@contextlib.contextmanager
def exclude_wait_time() -> Iterator[None]:
    """Excludes the time inside the context from the request's duration: the client asked to wait."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        _waited.set(time.perf_counter() - begin)


class Metrics:
    """The agent's metrics; create it once per registry."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        virtual_machines: Callable[[], float],
        ports: Callable[[], float],
        waiting: Callable[[], float],
    ) -> None:
        self._requests = Counter(
            "contrail_agent_requests",
            "Requests by method, route and status; status is `hung up` if the client disconnected first.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "contrail_agent_request_seconds",
            "Time to the response, without the time that the client asked to wait.",
            ["route"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._children: dict[tuple[str, str, int | str], tuple[Counter, Histogram]] = {}
        for name, documentation, value in (
            ("contrail_agent_machines", "VirtualMachines of this node.", virtual_machines),
            ("contrail_agent_ports", "Plugged ports.", ports),
            ("contrail_agent_waiting_requests", "Requests that wait for the interfaces of a pod.", waiting),
        ):
            Gauge(name, documentation, registry=registry).set_function(value)

    def middleware(self) -> Middleware:
        """Returns the middleware that counts requests; make it the outermost one, so that it sees every status."""

        @web.middleware
        async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
            begin = time.perf_counter()
            _waited.set(0.0)  # a context variable: each request runs in a task of its own
            status: int | str = _DISCONNECTED
            try:
                response = await handler(request)
                status = response.status
            finally:  # also reached by the cancellation of a disconnected client's request
                resource = request.match_info.route.resource
                method, route = (request.method, resource.canonical) if resource else (_UNKNOWN, _UNKNOWN)
                self.record(method, route, status, time.perf_counter() - begin - _waited.get())
            return response

        return observe

    def record(self, method: str, route: str, status: int | str, seconds: float) -> None:
        """Records a request; `route` is a path with parameters in braces."""
        key = (method, route, status)
        if key not in self._children:  # looking up a child by its labels is the slowest part
            self._children[key] = self._requests.labels(*key), self._seconds.labels(key[1])
        requests, duration = self._children[key]
        requests.inc()
        duration.observe(seconds)
