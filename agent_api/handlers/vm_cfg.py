"""`/vm-cfg`: a pod's interfaces as configured, by the name of its VirtualMachine.

Our extensions (`wait`, `uid`) are query parameters, because the Contrail vrouter agent ignores the query. A pod without
interfaces is answered with that agent's 404, to which the reason is added if the manager has stored one.
"""

import msgspec
from aiohttp import web
from msgspec import UNSET, UnsetType

from agent_api.handlers.operation import NOT_FOUND, Operation, QueryParameter, json_bytes_response, query_parameter
from agent_api.handlers.waiting import wait_parameter, wait_seconds
from agent_api.metrics import exclude_wait_time
from agent_api.responses import ConfiguredInterface
from agent_api.virtual_machine_index import VirtualMachineIndex
from agent_api.waiters import WaitSlots
from contrail_config.objects import Pending
from contrail_service.pages import json_response

_WAIT = wait_parameter("the interfaces to be configured")
_UID = QueryParameter(
    "uid", "Only the pod with this uid or, for a static pod, this config hash.", {"type": "string", "minLength": 1}
)


class NoInterfaces(msgspec.Struct):
    """The pod has no interfaces; `reason` and `message` say why if that is known, as in its event."""

    error: str
    reason: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class VmCfgHandlers:
    """The endpoint that plugins query first."""

    def __init__(self, virtual_machines: VirtualMachineIndex, wait_slots: WaitSlots) -> None:
        self._virtual_machines = virtual_machines
        self._wait_slots = wait_slots

    def operations(self) -> list[Operation]:
        """Returns the operations."""
        return [
            Operation(
                "GET",
                "/vm-cfg/{name}",
                "A pod's interfaces as configured, in index order.",
                self._get,
                response=list[ConfiguredInterface],
                query=(_WAIT, _UID),
                errors=(500,),
                not_found_response=NoInterfaces,
            )
        ]

    async def _get(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        uid = query_parameter(request, "uid")
        wait = wait_seconds(request)
        served = self._virtual_machines.find(name, uid=uid)
        if served is None and wait:
            # The fast path has no wait: a request that must wait always comes here.
            with self._wait_slots.take(), exclude_wait_time():
                served = await self._virtual_machines.wait_for(name, uid=uid, seconds=wait)
        if served is None:
            return _no_interfaces(self._virtual_machines.pending_reason(name, uid=uid))
        return json_bytes_response(served.vm_cfg())


def _no_interfaces(pending: Pending | None) -> web.Response:
    answer = NoInterfaces(NOT_FOUND)
    if pending is not None:
        answer = NoInterfaces(NOT_FOUND, pending.reason, pending.message)
    return json_response(answer, status=404)
