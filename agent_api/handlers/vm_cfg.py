"""`/vm-cfg`: a pod's interfaces as configured, by the name of its VirtualMachine.

Our extensions (`wait`, `uid`) are query parameters, because the Contrail vrouter agent ignores the query.
"""

from aiohttp import web

from agent_api.handlers.operation import Operation, QueryParameter, json_bytes_response, not_found, query_parameter
from agent_api.handlers.waiting import wait_parameter, wait_seconds
from agent_api.metrics import exclude_wait_time
from agent_api.responses import ConfiguredInterface
from agent_api.virtual_machine_index import VirtualMachineIndex
from agent_api.waiters import WaitSlots

_WAIT = wait_parameter("the interfaces to be configured")
_UID = QueryParameter(
    "uid", "Only the pod with this uid or, for a static pod, this config hash.", {"type": "string", "minLength": 1}
)


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
            raise not_found()
        return json_bytes_response(served.vm_cfg())
