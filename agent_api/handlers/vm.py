"""`/vm`: the ports of containers, which CNI plugins plug and unplug.

Our extensions (an array as POST body, `vm-id` in the query, unplugging a single interface) are requests that the
Contrail vrouter agent rejects or ignores, so existing clients do not send them by accident.
"""

import msgspec
from aiohttp import web

from agent_api.handlers.operation import (
    BODY_ERRORS,
    WRITE_ERRORS,
    Operation,
    QueryParameter,
    json_bytes_response,
    not_found,
    ok_response,
    query_parameter,
)
from agent_api.ports.container import ContainerPortRequest, parse_container_ports
from agent_api.ports.table import PortTable
from agent_api.request_bodies import RequestBodyReader
from agent_api.responses import PluggedInterface, plugged_interface
from agent_api.virtual_machine_index import VirtualMachineIndex

_CONTAINER = QueryParameter(
    "vm-id", "Unplugs only ports that this container has plugged.", {"type": "string", "minLength": 1}
)


class VmHandlers:
    """The endpoints by which CNI plugins plug, read and unplug ports."""

    def __init__(self, virtual_machines: VirtualMachineIndex, ports: PortTable, body_reader: RequestBodyReader) -> None:
        self._virtual_machines = virtual_machines
        self._ports = ports
        self._body_reader = body_reader

    def operations(self) -> list[Operation]:
        """Returns the operations."""
        return [
            Operation(
                "POST",
                "/vm",
                "Plugs ports, all or none.",
                self._plug,
                request_body=ContainerPortRequest | list[ContainerPortRequest],
                errors=BODY_ERRORS,
            ),
            *(
                Operation("GET", path, "The plugged interfaces.", self._get, response=list[PluggedInterface])
                for path in ("/vm/{vm}", "/vm/{vm}/{vmi}")
            ),
            *(
                Operation(
                    "DELETE",
                    path,
                    "Unplugs ports; missing ports are not an error.",
                    self._unplug,
                    query=(_CONTAINER,),
                    errors=WRITE_ERRORS,
                )
                for path in ("/vm/{vm}", "/vm/{vm}/{vmi}")
            ),
        ]

    async def _plug(self, request: web.Request) -> web.Response:
        async with self._body_reader.read(request) as body:
            await self._ports.plug(parse_container_ports(body))
        return ok_response()

    async def _get(self, request: web.Request) -> web.Response:
        interfaces = self._plugged_interfaces(request.match_info["vm"], request.match_info.get("vmi"))
        return json_bytes_response(msgspec.json.encode(interfaces))

    async def _unplug(self, request: web.Request) -> web.Response:
        container = query_parameter(request, "vm-id")
        path = request.match_info
        await self._ports.unplug(path["vm"], vmi_uuid=path.get("vmi"), container=container)
        return ok_response()

    def _plugged_interfaces(self, vm_uuid: str, vmi_uuid: str | None) -> list[PluggedInterface]:
        """Returns all interfaces or the given one; 404 unless all of them are plugged, as the vrouter agent does."""
        virtual_machine = self._virtual_machines.by_uuid(vm_uuid)
        ports = self._ports.by_virtual_machine(vm_uuid)
        if virtual_machine is None:
            raise not_found()
        wanted = [interface for interface in virtual_machine.interfaces if vmi_uuid in (None, interface.uuid)]
        if not wanted or any(interface.uuid not in ports for interface in wanted):
            raise not_found()
        return [plugged_interface(virtual_machine, interface, ports[interface.uuid]) for interface in wanted]
