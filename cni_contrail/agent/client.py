"""Client of the node agent's API: the paths and bodies of the Contrail vrouter agent, and the additions of ours.

Responses are decoded here and validated in `cni_contrail.interfaces.served`. 404 to a GET is no list; 503 raises
`UnreachableError`, as a missing response does; any other status raises `RejectedError`.

The requests of an ADD have two steps, `request_...` and reading the response: the agent works while ADD continues.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from cni_contrail.agent.http import Endpoint, HttpExchange, HttpResponse
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError, RejectedError, UnreachableError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.quoting import MAX_LISTED, cut
from cni_contrail.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PASSING = (408, 429)  # a request that took too long, or one of too many

Port = Mapping[str, str]
"""The body of `POST /vm`: the keys of the Contrail vrouter agent, all values strings."""


class VmConfig(NamedTuple):
    """The answer to `/vm-cfg`: the interfaces, None if the agent has no list; then `pending` says why, if known."""

    interfaces: list[Any] | None
    pending: str = ""


class AgentClient:
    """The agent of this node.

    All methods that read an answer raise `UnreachableError`, `RejectedError`, or `PluginError` with code 100 for a
    malformed answer.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def request_vm_config(self, virtual_machine: str, uid: str, wait: float, deadline: Deadline) -> HttpExchange:
        """Requests the pod's interfaces as configured (`/vm-cfg`).

        Our agent holds its answer for up to `wait` seconds until the list of exactly this pod is complete. The Contrail
        vrouter agent ignores both parameters and answers what it has.
        """
        query = f"?wait={wait:.3f}" + (f"&uid={uid}" if uid else "")
        return HttpExchange(self.endpoint, "GET", f"/vm-cfg/{virtual_machine}{query}", b"", deadline)

    def read_vm_config(self, exchange: HttpExchange) -> VmConfig:
        """Returns the pod's interfaces, or why there are none."""
        answer = self._answer(exchange)
        if answer.status == 404:
            return VmConfig(None, _pending_text(answer))
        return VmConfig(self._decode_list(exchange, answer))

    def vm_ports(self, vm_uuid: str, interface_uuid: str, deadline: Deadline) -> list[Any] | None:
        """Returns the VM's plugged interfaces with their addresses, only one unless `interface_uuid` is empty.

        None until the agent has all data of what is requested: without `interface_uuid`, the Contrail vrouter agent
        answers only when every configured interface of the VM is plugged.
        """
        return self._list(HttpExchange(self.endpoint, "GET", _vm_path(vm_uuid, interface_uuid), b"", deadline))

    def request_plug(self, ports: Port | Sequence[Port], deadline: Deadline) -> HttpExchange:
        """Requests to plug one port, or (our agent only) several, all or none."""
        return HttpExchange(self.endpoint, "POST", "/vm", json.dumps(ports).encode(), deadline)

    def confirm_plug(self, exchange: HttpExchange) -> None:
        """Returns when the agent has accepted the ports."""
        self._answer(exchange)

    def unplug(self, vm_uuid: str, interface_uuid: str, container_id: str, deadline: Deadline) -> None:
        """Releases what the container owns of a VM, limited to one interface unless `interface_uuid` is empty.

        The Contrail vrouter agent ignores the owner and removes all ports of the VM.
        """
        path = f"{_vm_path(vm_uuid, interface_uuid)}?vm-id={container_id}"
        self._answer(HttpExchange(self.endpoint, "DELETE", path, b"", deadline))

    def not_ready_reasons(self, deadline: Deadline) -> list[str]:
        """Returns why the agent is not ready; empty if it is. The Contrail vrouter agent has no /readyz (404)."""
        answer = HttpExchange(self.endpoint, "GET", "/readyz", b"", deadline).response()
        if answer.status in (200, 404):
            return []
        return _reasons(answer) or [f"{answer.status} {_error_text(answer)}"]

    def _list(self, exchange: HttpExchange) -> list[Any] | None:
        answer = self._answer(exchange)
        return None if answer.status == 404 else self._decode_list(exchange, answer)

    def _decode_list(self, exchange: HttpExchange, answer: HttpResponse) -> list[Any]:
        try:
            document = json.loads(answer.body.decode())
        except (ValueError, RecursionError) as error:
            raise self._malformed(exchange, f"not JSON: {error}") from error
        if not isinstance(document, list):
            raise self._malformed(exchange, f"not a list: {answer.body[:100].decode(errors='replace')}")
        return document

    def _answer(self, exchange: HttpExchange) -> HttpResponse:
        answer = exchange.response()
        # 404 to GET means "no list yet". To POST and DELETE it would be an error: the path itself is wrong.
        if answer.status in (200, 404) and exchange.method == "GET":
            return answer
        if answer.status in (200, 204) and exchange.method != "GET":
            return answer
        why = _error_text(answer)
        if answer.status == 503:
            raise UnreachableError(f"agent at {self.endpoint} is not ready: {why}", was_sent=True)
        rejected = f"{exchange.method} {cut(exchange.path)}"
        is_final = 400 <= answer.status < 500 and answer.status not in _PASSING
        raise RejectedError(f"agent at {self.endpoint} rejects {rejected}: {answer.status} {why}", is_final=is_final)

    def _malformed(self, exchange: HttpExchange, what: str) -> PluginError:
        return PluginError(
            Code.BAD_AGENT_RESPONSE, f"agent at {self.endpoint}: response to GET {cut(exchange.path)} is {what}"
        )


def agent_client(settings: Settings) -> AgentClient:
    """Returns a client of the agent that the settings name."""
    return AgentClient(Endpoint(settings.agent_socket, settings.vrouter_ip, settings.vrouter_port))


def _vm_path(vm_uuid: str, interface_uuid: str) -> str:
    return f"/vm/{vm_uuid}/{interface_uuid}" if interface_uuid else f"/vm/{vm_uuid}"


def _reasons(answer: HttpResponse) -> list[str]:
    try:
        return [cut(str(reason)) for reason in json.loads(answer.body)["reasons"][:MAX_LISTED]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []


def _pending_text(answer: HttpResponse) -> str:
    """Returns what the pod waits for, which only our agent says; its message may quote what a tenant wrote."""
    try:
        document = json.loads(answer.body)
        return cut(f"{document['reason']}: {document['message']}")
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def _error_text(answer: HttpResponse) -> str:
    try:
        return cut(str(json.loads(answer.body)["error"]).strip("{} "))
    except (ValueError, LookupError, TypeError, RecursionError):
        return answer.body[:200].decode(errors="replace")
