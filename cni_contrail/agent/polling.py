"""Polling of the agent until the pod's list of interfaces is complete, or its ports have addresses.

A pod's list may appear later than the call, in parts, and without annotations at first; the agent may still be
starting. All of this is retried within one deadline; the error names what was missing at its end. Requests are sent
before their answers are needed, so that the agent works in parallel with the call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from types import TracebackType

from cni_contrail.agent.client import AgentClient, Port
from cni_contrail.agent.http import HttpExchange
from cni_contrail.deadline import NEVER, Deadline, Interruption
from cni_contrail.errors import PluginError, TryAgainError, UnreachableError
from cni_contrail.interfaces.served import ServedList, read_list
from cni_contrail.log import Log
from cni_contrail.pod import PodIdentity
from cni_contrail.quoting import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self, TypeVar

    Found = TypeVar("Found")

_IMMEDIATE = 0.01  # seconds: an agent that has the list needs a tenth of it
_FIRST_PAUSE = 0.05
_MAX_HELD = 20.0  # seconds that one answer may be held: bounds the time until a dead connection is noticed
_MAX_ANSWER = 10.0  # seconds for an answer that is not held
_GRACE = 1.0  # seconds that an answer held until the last moment may be late


class PollBudget:
    """Time for polling in total, and the longest pause between two attempts, in seconds; ends early if interrupted."""

    def __init__(self, total: float, longest_pause: float, log: Log, interruption: Interruption = NEVER) -> None:
        self.deadline = Deadline(total, interruption)
        self._longest_pause = longest_pause
        self._log = log
        self._interruption = interruption

    @property
    def answer_deadline(self) -> Deadline:
        """Deadline for an answer that the agent does not hold back."""
        return self.answer_held_for(min(_MAX_ANSWER - _GRACE, self.deadline.remaining))

    def answer_held_for(self, seconds: float) -> Deadline:
        """Deadline for an answer that the agent holds back for up to `seconds`."""
        return Deadline(seconds + _GRACE, self._interruption)

    def poll(self, look: Callable[[], Found | str]) -> Found:
        """Calls `look` until it returns a result instead of a sentence that says what is missing.

        Raises `TryAgainError` with the last sentence when the time is over.
        """
        missing = ""
        for _ in self.deadline.attempts(_FIRST_PAUSE, self._longest_pause):
            try:
                found = look()
            except UnreachableError as error:  # the agent may be starting or restarting
                found = error.message
            if not isinstance(found, str):
                return found
            if found != missing:
                self._log.debug(f"waiting: {found}")
            missing = found
        raise TryAgainError(missing)


class InterfaceListRequest:
    """Request for a pod's complete list of interfaces, sent at construction; the caller closes it."""

    def __init__(self, agent: AgentClient, virtual_machine: str, pod: PodIdentity, budget: PollBudget) -> None:
        self._agent = agent
        self._virtual_machine = virtual_machine
        self._pod = pod
        self._budget = budget
        self._request = _PendingRequest(self._send)

    def result_now(self) -> ServedList | None:
        """Returns the list if the agent answers with it immediately, otherwise None."""
        if not self._request.responds_within(_IMMEDIATE):
            return None
        try:
            found = self._look()
        except UnreachableError:
            return None  # `wait` retries
        return None if isinstance(found, str) else found

    def wait(self) -> ServedList:
        """Waits for the list and returns it; raises `TryAgainError` when the budget is used up."""
        return self._budget.poll(self._look)

    def close(self) -> None:
        """Closes the connection if the answer was not read."""
        self._request.close()

    def _send(self) -> HttpExchange:
        # Long polling: an agent that holds its answer is asked again only every 20 s.
        wait = min(_MAX_HELD, self._budget.deadline.remaining)
        return self._agent.request_vm_config(
            self._virtual_machine, self._pod.uid, wait, self._budget.answer_held_for(wait)
        )

    def _look(self) -> ServedList | str:
        answer = self._agent.read_vm_config(self._request.take())
        if answer.interfaces is None:
            uid = f" with uid {cut(self._pod.uid)}" if self._pod.uid else ""
            why = f": {answer.pending}" if answer.pending else ""
            pod = f"pod {cut(str(self._pod))} ({cut(self._virtual_machine)}){uid}"
            return f"agent at {self._agent.endpoint} has no interfaces for {pod}{why}"
        served = read_list(answer.interfaces)
        missing = served.missing(self._pod.uid)
        return f"agent at {self._agent.endpoint}, pod {cut(str(self._pod))}: {missing}" if missing else served


class PlugRequest:
    """Request to plug ports, sent at construction.

    At the end of a `with` block the answer is read in any case: a later unplug must not overtake the plug.
    """

    def __init__(self, agent: AgentClient, ports: Port | Sequence[Port], budget: PollBudget) -> None:
        self._agent = agent
        self._budget = budget
        self._request = _PendingRequest(lambda: agent.request_plug(ports, budget.answer_deadline))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._request.is_open:
            with contextlib.suppress(PluginError):
                self._confirm()

    def wait(self) -> None:
        """Waits until the agent has accepted the ports; sends the request again while the agent is unreachable."""
        self._budget.poll(self._confirm)

    def _confirm(self) -> bool:
        self._agent.confirm_plug(self._request.take())
        return True


class _PendingRequest:
    """A request sent at construction; `take` returns its exchange, and later calls of `take` send it again."""

    def __init__(self, send: Callable[[], HttpExchange]) -> None:
        self._send = send
        self._sent: HttpExchange | None = send()

    @property
    def is_open(self) -> bool:
        """Whether the first exchange was not taken."""
        return self._sent is not None

    def responds_within(self, seconds: float) -> bool:
        """Returns whether the first answer begins in time; the rest of it must then follow within 1 s."""
        return self._sent is not None and self._sent.responds_within(seconds)

    def take(self) -> HttpExchange:
        sent, self._sent = self._sent, None
        return sent or self._send()

    def close(self) -> None:
        if self._sent is not None:
            self._sent.close()
