"""Waiting for the agent: until the pod's list of interfaces is whole, or its ports have their addresses.

A pod's list may come later than the call, in parts, and un-annotated at first; the agent may be starting. All of that
is waited for, within one deadline; what was missing at its end is the error. The agent is asked before its answer is
needed, and works while the call goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from cni_contrail.agent.client import AgentClient, Port
from cni_contrail.agent.http import HttpExchange
from cni_contrail.deadline import NEVER, Deadline, Interruption
from cni_contrail.errors import PluginError, TryAgainError, UnreachableError
from cni_contrail.interfaces.served import ServedAddress, ServedList, read_list, read_ports
from cni_contrail.log import Log
from cni_contrail.pod import Pod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Found = TypeVar("Found")

_AT_ONCE = 0.01  # seconds: an agent that has the list needs a tenth of it
_FIRST_PAUSE = 0.05
_LONGEST_HELD = 20.0  # seconds that one answer may be held: a connection that died silently is noticed after them
_LONGEST_ANSWER = 10.0  # seconds that an answer may take which is not held
_GRACE = 1.0  # seconds that an answer held to the very end may be late


class PollBudget:
    """How long to wait in all, and for how long at most between two tries, both in seconds; and what ends it all."""

    def __init__(self, total: float, longest_pause: float, journal: Log, interruption: Interruption = NEVER) -> None:
        self.deadline = Deadline(total, interruption)
        self._longest_pause = longest_pause
        self._journal = journal
        self._interruption = interruption

    @property
    def answer_deadline(self) -> Deadline:
        """Until when one answer may take that the agent does not hold back."""
        return self.answer_held_for(min(_LONGEST_ANSWER - _GRACE, self.deadline.remaining))

    def answer_held_for(self, seconds: float) -> Deadline:
        """Until when an answer may take that the agent holds back for so long."""
        return Deadline(seconds + _GRACE, self._interruption)

    def poll(self, look: Callable[[], Found | str]) -> Found:
        """Looks again and again; `look` returns a sentence while something is missing.

        Raises `TryAgainError` with the last sentence when the time is over.
        """
        missing = ""
        for _ in self.deadline.tries(_FIRST_PAUSE, self._longest_pause):
            try:
                found = look()
            except UnreachableError as error:
                found = error.message
            if not isinstance(found, str):
                return found
            if found != missing:
                self._journal.debug(f"waiting: {found}")
            missing = found
        raise TryAgainError(missing)


class InterfaceListRequest:
    """A pod's whole list of interfaces, which the agent was asked for; to be closed."""

    def __init__(self, agent: AgentClient, machine: str, pod: Pod, patience: PollBudget) -> None:
        self._agent = agent
        self._machine = machine
        self._pod = pod
        self._patience = patience
        self._question = _PendingRequest(self._ask)

    def result_now(self) -> ServedList | None:
        """The list if the agent need not be waited for, None else."""
        if not self._question.responds_within(_AT_ONCE):
            return None
        try:
            found = self._look()
        except UnreachableError:
            return None
        return None if isinstance(found, str) else found

    def wait(self) -> ServedList:
        """The list when it is there."""
        return self._patience.poll(self._look)

    def close(self) -> None:
        """Hangs up if nobody wanted the answer."""
        self._question.close()

    def _ask(self) -> HttpExchange:
        wait = min(_LONGEST_HELD, self._patience.deadline.remaining)
        return self._agent.request_vm_config(self._machine, self._pod.uid, wait, self._patience.answer_held_for(wait))

    def _look(self) -> ServedList | str:
        answer = self._agent.read_vm_config(self._question.take())
        if answer is None:
            asked_for = f" with uid {self._pod.uid}" if self._pod.uid else ""
            return f"agent at {self._agent.endpoint} has no interfaces for pod {self._pod} ({self._machine}){asked_for}"
        served = read_list(answer)
        missing = served.missing(self._pod.uid)
        return f"agent at {self._agent.endpoint}, pod {self._pod}: {missing}" if missing else served


@contextlib.contextmanager
def plugging(agent: AgentClient, ports: Port | Sequence[Port], patience: PollBudget) -> Iterator[Callable[[], bool]]:
    """Tells the agent of ports; what it yields returns when the agent has taken them.

    Tells again if the agent is away just now: the same POST twice is one. If an error passes, the answer is waited for
    nevertheless: what the agent is told afterwards must not overtake it.
    """

    def tell() -> bool:
        agent.plug(question.take())
        return True

    question = _PendingRequest(lambda: agent.request_plug(ports, patience.answer_deadline))
    try:
        yield lambda: patience.poll(tell)
    finally:
        if question.is_open:
            with contextlib.suppress(PluginError):
                tell()


class _PendingRequest:
    """A request that is sent at once; `take` returns it, and later ones are sent when they are taken."""

    def __init__(self, ask: Callable[[], HttpExchange]) -> None:
        self._ask = ask
        self._asked: HttpExchange | None = ask()

    @property
    def is_open(self) -> bool:
        """Whether nobody has taken the first one."""
        return self._asked is not None

    def responds_within(self, seconds: float) -> bool:
        """Whether the answer to the first one begins so soon; its rest has a second then."""
        return self._asked is not None and self._asked.responds_within(seconds)

    def take(self) -> HttpExchange:
        asked, self._asked = self._asked, None
        return asked or self._ask()

    def close(self) -> None:
        if self._asked is not None:
            self._asked.close()


def wait_for_ports(
    agent: AgentClient, machine_uuid: str, interfaces: Collection[str], patience: PollBudget
) -> Mapping[str, tuple[ServedAddress, ...]]:
    """The addresses of plugged interfaces, by their uuid, as a stock agent tells them."""

    def look() -> Mapping[str, tuple[ServedAddress, ...]] | str:
        ports = read_ports(agent.vm_ports(machine_uuid, patience.answer_deadline) or ())
        missing = [uuid for uuid in interfaces if uuid not in ports]
        if missing:
            return f"agent at {agent.endpoint} has no addresses for interface {', '.join(missing)} of VM {machine_uuid}"
        return ports

    return patience.poll(look)
