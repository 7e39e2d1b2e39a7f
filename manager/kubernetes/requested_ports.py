"""Ports of pods for the API of a cluster: requested of the agents of their nodes through the API server.

A request is an annotation of the pod's virtual machine, the answer a part of the report of its node: see
`contrail_config.kubernetes.port_requests`. Somebody who keeps looking at a pod costs a write of its virtual machine
each minute, and one of the report whenever the counters have changed, at most every 10 s. What all of them together may
cost is limited, since each request of the API is answered from a request that is open already, if there is one.

An answer counts only in the report of the pod's own node, and only for a request of this process that is open.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Final

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.kubernetes.port_requests import OPEN, new_request, write_request
from contrail_config.objects import VirtualMachine
from contrail_config.port_readings import PodPorts
from contrail_service.token_bucket import TokenBucket
from manager.api.queries import PortsUnansweredError
from manager.api.types import PortView
from manager.api.views import port_views

RENEWED_AFTER: Final = OPEN / 2
"""Seconds after which a request is renewed when somebody asks again."""

TIMEOUT: Final = 4.0
"""Seconds to wait for an answer: less than `contrailctl` waits."""

MAX_REQUESTED: Final = 256
"""Pods whose requests are known; the one that was requested first is forgotten."""

_RATE: Final = 2.0
_BURST: Final = 20.0
"""Requests per second, and at once."""


Write = Callable[[str], Coroutine[None, None, None]]


class _Request:
    """A request to a node, and its latest answer. `earlier` is the request that it renews, answers to which count.

    It is written by a task of its own: who asked first may hang up, while others wait for the same answer.
    """

    def __init__(
        self, node: str, at: float, write: Write, *, earlier: str = "", answer: PodPorts | None = None
    ) -> None:
        self.node = node
        self.at = at
        self.value = new_request()
        self.written = asyncio.create_task(write(self.value))
        self.answer = answer
        self.answered = asyncio.Event()
        self._earlier = earlier
        if answer is not None:
            self.answered.set()

    def renewed(self, at: float, write: Write) -> "_Request":
        """Returns a request that has the answer of this one, unless that is one to an even earlier request."""
        is_answered = self.answer is not None and self.answer.requested == self.value
        return _Request(self.node, at, write, earlier=self.value, answer=self.answer if is_answered else None)

    def take(self, answer: PodPorts) -> None:
        if answer.requested in (self.value, self._earlier):
            self.answer = answer
            self.answered.set()


class RequestedPorts:
    """Finds ports of pods. `reports` are those of the nodes that are known; `clock` returns monotonic seconds."""

    def __init__(
        self,
        client: KubeClient,
        reports: Mapping[str, NodeReport],
        *,
        timeout: float = TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._reports = reports
        self._timeout = timeout
        self._clock = clock
        self._requests: dict[str, _Request] = {}  # by uuid of the virtual machine, the latest last
        self._limit = TokenBucket(rate=_RATE, burst=_BURST, clock=clock)

    def reported(self, node: str, report: NodeReport) -> None:
        """Takes the answers in a node's report."""
        for answer in report.ports:
            request = self._requests.get(answer.virtual_machine)
            if request is not None and request.node == node:
                request.take(answer)

    async def find(self, virtual_machine: VirtualMachine, names: Sequence[str]) -> list[PortView]:
        """Returns the ports of a virtual machine. Raises PortsUnansweredError, StoreError."""
        request = self._request(virtual_machine)
        try:
            async with asyncio.timeout(self._timeout):
                await asyncio.shield(request.written)
                await request.answered.wait()
        except TimeoutError as error:
            raise PortsUnansweredError(self._silence(virtual_machine.node, request)) from error
        assert request.answer is not None
        return port_views(virtual_machine, names, request.answer.ports, request.answer.counted_at)

    def _request(self, virtual_machine: VirtualMachine) -> _Request:
        """Returns a request that is open; makes one if there is none, or if it is to be renewed."""
        uuid, node, now = virtual_machine.uuid, virtual_machine.node, self._clock()
        known = self._requests.get(uuid)
        if known is not None and (known.node != node or now - known.at >= OPEN):
            known = None
        if known is not None and now - known.at < RENEWED_AFTER:
            return known
        if node not in self._reports:
            raise PortsUnansweredError(f"node {node}: no agent has reported")
        if not self._limit.take():
            if known is not None:
                return known
            raise PortsUnansweredError("the ports of too many pods are requested: try again in a moment")
        write = partial(write_request, self._client, virtual_machine)
        request = _Request(node, now, write) if known is None else known.renewed(now, write)
        request.written.add_done_callback(partial(self._forget_failed, uuid, request))
        self._requests.pop(uuid, None)
        self._requests[uuid] = request  # before it is written: the answer may come first
        if len(self._requests) > MAX_REQUESTED:
            del self._requests[next(iter(self._requests))]
        return request

    def _forget_failed(self, uuid: str, request: _Request, written: asyncio.Task[None]) -> None:
        has_failed = written.cancelled() or written.exception() is not None
        if has_failed and self._requests.get(uuid) is request:
            del self._requests[uuid]

    def _silence(self, node: str, request: _Request) -> str:
        if not request.written.done():
            return f"the API server did not take the request within {self._timeout:g} s"
        report = self._reports.get(node)
        if report is None:
            return f"node {node}: no agent has reported"
        version = report.versions.get("agent", "unknown")
        return (
            f"node {node}: its agent, of version {version}, which reported at {report.reported_at}, "
            f"did not answer within {self._timeout:g} s"
        )
