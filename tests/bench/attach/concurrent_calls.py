"""Concurrent calls for many pods, one process each."""

import os
import select
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.bench.attach.node import BenchNode
from tests.bench.process_timing import Program, summary
from tests.support.netns import Netns


class Attachment(NamedTuple):
    """A pod in its sandbox, with a program that no concurrent call uses."""

    program: Program
    pod: str
    sandbox: Netns
    container: str

    def again(self) -> "Attachment":
        """A copy with a new container ID in the same sandbox."""
        return self._replace(container=_new_container())


class CallTiming(NamedTuple):
    """Duration in seconds and exit status of a call."""

    seconds: float
    status: int


@contextmanager
def attachments(node: BenchNode, kind: str, number: int) -> Iterator[list[Attachment]]:
    """Yields attachments of so many pods of a kind; deletes their sandboxes at the end."""
    pods = [f"{kind}-{each}" for each in range(number)]
    made = [Attachment(node.shim(pod), pod, Netns("bench"), _new_container()) for pod in pods]
    try:
        yield made
    finally:
        for each in made:
            each.sandbox.delete()


def start(node: BenchNode, command: str, each: Attachment) -> int:
    """Starts a call and returns its process ID."""
    return each.program.start(node.environment(command, each.sandbox.path, each.container, each.pod))


def run_concurrently(node: BenchNode, command: str, pods: Sequence[Attachment]) -> list[CallTiming]:
    """Starts a call for each pod and waits until all have ended."""
    running = {}
    poll = select.poll()
    for each in pods:
        moment = time.perf_counter()
        pid = start(node, command, each)
        descriptor = os.pidfd_open(pid)
        running[descriptor] = (pid, moment)
        poll.register(descriptor, select.POLLIN)
    ended = []
    while running:
        ready = poll.poll()
        now = time.perf_counter()
        for descriptor, _ in ready:
            pid, moment = running.pop(descriptor)
            ended.append(CallTiming(now - moment, status_of(pid)))
            poll.unregister(descriptor)
            os.close(descriptor)
    return ended


def status_of(pid: int) -> int:
    """Waits for a process and returns its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def times(ended: Sequence[CallTiming]) -> dict[str, Any]:
    """Median, 99th percentile and number of failures."""
    return {**summary([each.seconds for each in ended]), "failures": sum(1 for each in ended if each.status)}


def _new_container() -> str:
    return uuid.uuid4().hex * 2
