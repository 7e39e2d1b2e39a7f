"""`/vm`: the ports of containers, which CNI plugins plug and free.

What upstream's plugin does not know (an array posted, `vm-id` in the query, one interface freed alone) is refused or
ignored by upstream, and so no old client does it.
"""

import msgspec
from aiohttp import web

from agent_api.handlers.operation import (
    ERRORS_OF_A_BODY,
    ERRORS_OF_A_WRITE,
    Operation,
    Parameter,
    answer_json,
    done,
    not_found,
    text_parameter,
)
from agent_api.ports.container import ContainerPortRequest, parse_container_ports
from agent_api.ports.table import PortTable
from agent_api.request_bodies import RequestBodyReader
from agent_api.responses import PluggedInterface, plugged_interface
from agent_api.virtual_machine_index import VirtualMachineIndex

_CONTAINER = Parameter("vm-id", "Only what this container plugged is freed.", {"type": "string", "minLength": 1})


class ContainerPages:
    """The pages by which plugins plug, read and free."""

    def __init__(self, machines: VirtualMachineIndex, ports: PortTable, bodies: RequestBodyReader) -> None:
        self._machines = machines
        self._ports = ports
        self._bodies = bodies

    def operations(self) -> list[Operation]:
        """Returns the pages."""
        return [
            Operation(
                "POST",
                "/vm",
                "Plugs ports, all or none.",
                self._plug,
                body=ContainerPortRequest | list[ContainerPortRequest],
                errors=ERRORS_OF_A_BODY,
            ),
            *(
                Operation("GET", path, "The plugged interfaces.", self._show, answer=list[PluggedInterface])
                for path in ("/vm/{vm}", "/vm/{vm}/{vmi}")
            ),
            *(
                Operation(
                    "DELETE",
                    path,
                    "Frees ports; those that are not there are no error.",
                    self._unplug,
                    query=(_CONTAINER,),
                    errors=ERRORS_OF_A_WRITE,
                )
                for path in ("/vm/{vm}", "/vm/{vm}/{vmi}")
            ),
        ]

    async def _plug(self, request: web.Request) -> web.Response:
        async with self._bodies.of(request) as body:
            await self._ports.plug(parse_container_ports(body))
        return done()

    async def _show(self, request: web.Request) -> web.Response:
        items = self._plugged(request.match_info["vm"], request.match_info.get("vmi"))
        return answer_json(msgspec.json.encode(items))

    async def _unplug(self, request: web.Request) -> web.Response:
        container = text_parameter(request, "vm-id")
        path = request.match_info
        await self._ports.unplug(path["vm"], vmi_uuid=path.get("vmi"), container=container)
        return done()

    def _plugged(self, vm_uuid: str, vmi_uuid: str | None) -> list[PluggedInterface]:
        """All interfaces of the machine, or the one: whole or not at all, as upstream has it."""
        machine = self._machines.with_uuid(vm_uuid)
        ports = self._ports.of_machine(vm_uuid)
        if machine is None:
            raise not_found()
        wanted = [interface for interface in machine.interfaces if vmi_uuid in (None, interface.uuid)]
        if not wanted or any(interface.uuid not in ports for interface in wanted):
            raise not_found()
        return [plugged_interface(machine, interface, ports[interface.uuid]) for interface in wanted]
