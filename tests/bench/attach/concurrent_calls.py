"""Calls for many pods that all start at once, each as a process of its own."""

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
    """One pod in its sandbox, with a program that nobody else uses at the time."""

    program: Program
    pod: str
    sandbox: Netns
    container: str

    def again(self) -> "Attachment":
        """The same for another container, in the same sandbox."""
        return self._replace(container=_new_container())


class Ended(NamedTuple):
    """How long a call took, and its exit status."""

    seconds: float
    status: int


@contextmanager
def attachments(node: BenchNode, kind: str, number: int) -> Iterator[list[Attachment]]:
    """So many pods of a kind, in sandboxes that are removed at the end."""
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


def run_concurrently(node: BenchNode, command: str, pods: Sequence[Attachment]) -> list[Ended]:
    """Starts a call for each and returns when all have ended."""
    began = {}
    poll = select.poll()
    for each in pods:
        moment = time.perf_counter()
        pid = start(node, command, each)
        descriptor = os.pidfd_open(pid)
        began[descriptor] = (pid, moment)
        poll.register(descriptor, select.POLLIN)
    ended = []
    while began:
        ready = poll.poll()
        now = time.perf_counter()
        for descriptor, _ in ready:
            pid, moment = began.pop(descriptor)
            ended.append(Ended(now - moment, status_of(pid)))
            poll.unregister(descriptor)
            os.close(descriptor)
    return ended


def status_of(pid: int) -> int:
    """Waits for a process and returns its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def times(ended: Sequence[Ended]) -> dict[str, Any]:
    """Median, 99th percentile and the number of those that failed."""
    return {**summary([each.seconds for each in ended]), "failures": sum(1 for each in ended if each.status)}


def _new_container() -> str:
    return uuid.uuid4().hex * 2
