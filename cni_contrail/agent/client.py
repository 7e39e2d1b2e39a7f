"""What the plugin asks of a node agent: upstream's paths and bodies, and the additions of ours.

Answers are decoded here and read in `cni_contrail.interfaces.served`. "Not there" (404) is an answer, None; "not now"
(503) is `UnreachableError` like no answer at all; any other failure is `RefusedError`.

What an ADD asks is two steps each, `ask_...` and the reading of the answer: the agent works while the ADD goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from cni_contrail.agent.http import Endpoint, HttpExchange, HttpResponse
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError, RejectedError, UnreachableError
from cni_contrail.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Port = Mapping[str, str]
"""The body of `POST /vm`: upstream's keys, all strings."""


class AgentClient:
    """The agent of this node. All methods raise `UnreachableError`, `RefusedError`, or code 100 for nonsense."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def request_vm_config(self, machine: str, uid: str, wait: float, deadline: Deadline) -> HttpExchange:
        """Asks for the pod's interfaces as configured (`/vm-cfg`).

        Ours holds its answer for up to `wait` seconds until the list of this very pod is whole; a stock agent knows
        neither parameter and answers what it has.
        """
        query = f"?wait={wait:.3f}" + (f"&uid={uid}" if uid else "")
        return HttpExchange(self.endpoint, "GET", f"/vm-cfg/{machine}{query}", b"", deadline)

    def read_vm_config(self, asked: HttpExchange) -> list[Any] | None:
        """The pod's interfaces; None if the agent has no list."""
        return self._list(asked)

    def vm_ports(self, machine_uuid: str, deadline: Deadline) -> list[Any] | None:
        """The VM's plugged interfaces with their addresses; None until all that they need has arrived."""
        return self._list(HttpExchange(self.endpoint, "GET", f"/vm/{machine_uuid}", b"", deadline))

    def request_plug(self, ports: Port | Sequence[Port], deadline: Deadline) -> HttpExchange:
        """Tells the agent of one port, or (ours only) of several, all or nothing."""
        return HttpExchange(self.endpoint, "POST", "/vm", json.dumps(ports).encode(), deadline)

    def plug(self, asked: HttpExchange) -> None:
        """Returns when the agent has taken the ports."""
        self._answer(asked)

    def unplug(self, machine_uuid: str, interface_uuid: str, container_id: str, deadline: Deadline) -> None:
        """Frees what the container owns of a VM, or of one of its interfaces (empty: of all).

        A stock agent ignores the owner and frees all ports of the VM.
        """
        path = f"/vm/{machine_uuid}/{interface_uuid}" if interface_uuid else f"/vm/{machine_uuid}"
        self._answer(HttpExchange(self.endpoint, "DELETE", f"{path}?vm-id={container_id}", b"", deadline))

    def not_ready_reasons(self, deadline: Deadline) -> list[str]:
        """What keeps the agent from serving; nothing: it is ready, or a stock one, which has no page about it."""
        answer = HttpExchange(self.endpoint, "GET", "/readyz", b"", deadline).answer()
        if answer.status in (200, 404):
            return []
        return _reasons(answer) or [f"{answer.status} {_error_text(answer)}"]

    def _list(self, asked: HttpExchange) -> list[Any] | None:
        answer = self._answer(asked)
        if answer.status == 404:
            return None
        try:
            document = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise self._malformed(asked, f"no JSON: {error}") from error
        if not isinstance(document, list):
            raise self._malformed(asked, f"no list: {answer.body[:100].decode(errors='replace')}")
        return document

    def _answer(self, asked: HttpExchange) -> HttpResponse:
        answer = asked.answer()
        if answer.status == 200 or (answer.status == 404 and asked.method == "GET"):
            return answer
        why = _error_text(answer)
        if answer.status == 503:
            raise UnreachableError(f"agent at {self.endpoint} cannot answer now: {why}")
        refused = f"{asked.method} {asked.path}"
        raise RejectedError(f"agent at {self.endpoint} refuses {refused}: {answer.status} {why}")

    def _malformed(self, asked: HttpExchange, what: str) -> PluginError:
        return PluginError(Code.BAD_AGENT_RESPONSE, f"agent at {self.endpoint} answers GET {asked.path} with {what}")


def agent_client(settings: Settings) -> AgentClient:
    """The agent that the settings name."""
    return AgentClient(Endpoint(settings.agent_socket, settings.vrouter_ip, settings.vrouter_port))


def _reasons(answer: HttpResponse) -> list[str]:
    try:
        return [str(reason) for reason in json.loads(answer.body)["reasons"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []


def _error_text(answer: HttpResponse) -> str:
    try:
        return str(json.loads(answer.body)["error"]).strip("{} ")
    except (ValueError, LookupError, TypeError, RecursionError):
        return answer.body[:200].decode(errors="replace")
