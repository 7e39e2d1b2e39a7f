"""Breakdown of the time of one ADD, and the time that the kernel needs for the same messages.

Each part is measured separately, so that the measurement does not affect other parts:

- shim: a call that it answers itself;
- hand-over: a call that the daemon rejects after reading it, minus the shim;
- phases of the daemon: the same functions in this process, with timestamps at their start and end;
- kernel: only the system calls with prepared messages of one interface.
"""

import os
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

from cni_contrail.execution_context import ExecutionContext
from cni_contrail.link import links
from cni_contrail.link.addresses import add_address
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.links import LinkRef
from cni_contrail.link.lookup import index_of
from cni_contrail.link.message import NetlinkRequest, datagram
from cni_contrail.link.netns import open_netns
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.remove import HostLink, remove_links
from cni_contrail.link.routes import add_default_route
from cni_contrail.log import Log
from cni_contrail.plugin import respond
from cni_contrail.state.attachments import Attachments
from cni_contrail.state.records import Record
from tests.bench.attach.node import PODS, BenchNode, Pod
from tests.bench.attach.ratios import attach_and_detach
from tests.bench.process_timing import Program
from tests.support.netns import Netns

Seconds = dict[str, list[float]]


class TimedContext(ExecutionContext):
    """Execution context that measures the phases of a call until the delivery of its result."""

    def __init__(self, log: str, seconds: Seconds) -> None:
        self._log = log
        self._seconds = seconds
        self._started = time.perf_counter()

    def make_log(self, path: str = "", level: str = "info") -> Log:
        """A log file, like the daemon's."""
        return Log(path or self._log, level)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measures a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name].append(time.perf_counter() - started)

    def deliver(self, result: str) -> None:
        """Ends the measurement of the call."""
        self._seconds["call"].append(time.perf_counter() - self._started)


def break_down(node: BenchNode, runs: int) -> dict[str, Any]:
    """Returns medians of `runs` runs, in milliseconds."""
    seconds: Seconds = defaultdict(list)
    for number in range(runs):
        pod = f"one-{number % PODS['one']}"
        seconds["whole"].append(attach_and_detach(node, node.shim(), Pod(pod))[0])
        seconds["shim"].append(_seconds_of(node.shim(), {"CNI_COMMAND": "VERSION"}))
        seconds["refused"].append(_refused(node))
        record = _attach_here(node, pod, seconds)
        seconds["state"].append(_write(node, record))
        seconds["kernel"].append(_kernel_alone(record.interfaces[0].plan))
    took = {name: median(each) * 1000 for name, each in seconds.items()}
    parts = {
        "shim": took["shim"],
        "hand-over": took["refused"] - took["shim"],
        "agent: list": took["list"],
        "links": took["make"],
        "agent: ports, beyond the links": took["plug"],
        "state": took["state"],
        "the rest of the call": took["call"] - sum(took[part] for part in ("list", "make", "plug", "state")),
    }
    rows = {**parts, "sum": sum(parts.values()), "whole": took["whole"], "of it the kernel's own": took["kernel"]}
    return {name: f"{value:.2f} ms" for name, value in rows.items()}


def _seconds_of(program: Program, environment: Mapping[str, str]) -> float:
    """Duration of a call, also of a failing one."""
    started = time.perf_counter()
    os.waitpid(program.start(environment), 0)
    return time.perf_counter() - started


def _refused(node: BenchNode) -> float:
    program = node.shim("refused")
    program.stdin.write_text('{"cniVersion": "1.0.0"}')
    return _seconds_of(program, node.environment("ADD", node.namespace.path, "c", "unknown"))


def _attach_here(node: BenchNode, pod: str, seconds: Seconds) -> Record:
    """Attaches and detaches a pod in this process and returns the attachment's record."""
    sandbox = Netns("bench")
    container = uuid.uuid4().hex * 2
    configuration = node.shim().stdin.read_bytes()
    context = TimedContext(str(node.folder / "here.log"), seconds)
    try:
        added = respond(node.environment("ADD", sandbox.path, container, pod), lambda: configuration, context)
        record = _attachments(node).read(container, "eth0")
        assert record is not None, added
        respond(node.environment("DEL", sandbox.path, container, pod), lambda: configuration, context)
    finally:
        sandbox.delete()
    return record


def _attachments(node: BenchNode) -> Attachments:
    return Attachments(str(node.state), Log(os.devnull))


def _write(node: BenchNode, record: Record) -> float:
    """Duration of both writes of an ADD: the planned and the completed attachment."""
    state = _attachments(node)
    with state.lock(record.container_id, timeout=1):
        started = time.perf_counter()
        state.write(record._replace(finished=False))
        state.write(record)
        seconds = time.perf_counter() - started
        state.remove(record)
    return seconds


def _kernel_alone(plan: InterfacePlan) -> float:
    sandbox = Netns("bench")
    netns = open_netns(sandbox.path)
    try:
        with RouteSocket() as host, open_route_socket(netns) as inside:
            seconds = _exchange(host, [links.create_pair(plan, netns)])
            seconds += _exchange(host, [links.set_host_end(plan, ipv6=True)])
            index = index_of(inside, plan.name)
            assert index is not None
            end = LinkRef(plan.name, index)
            addresses = [add_address(end, address) for address in plan.addresses]
            seconds += _exchange(inside, [links.set_sandbox_end(end), *addresses])
            seconds += _exchange(inside, [add_default_route(end, default, plan.addresses) for default in plan.defaults])
        remove_links([HostLink(plan.host_name, plan.alias)])
    finally:
        os.close(netns)
        sandbox.delete()
    return seconds


def _exchange(kernel: RouteSocket, requests: list[NetlinkRequest]) -> float:
    data = datagram(requests, 1)
    started = time.perf_counter()
    os.write(kernel.fileno(), data)
    os.read(kernel.fileno(), 65536)
    return time.perf_counter() - started
