"""`/port`, `/enable-port`, `/disable-port`, `/syncports`: the ports of instances, for nova and vCenter."""

import msgspec
from aiohttp import web

from agent_api.handlers.operation import (
    BODY_ERRORS,
    WRITE_ERRORS,
    Operation,
    json_bytes_response,
    not_found,
    ok_response,
)
from agent_api.ports.instance import InstancePortRequest, parse_instance_ports
from agent_api.ports.stale import StalePortCleaner
from agent_api.ports.table import PortTable
from agent_api.request_bodies import RequestBodyReader
from agent_api.responses import PluggedInterface, plugged_interface
from agent_api.virtual_machine_index import VirtualMachineIndex


class PortHandlers:
    """The endpoints by which orchestrators of virtual machines plug, read and unplug ports."""

    def __init__(
        self,
        virtual_machines: VirtualMachineIndex,
        ports: PortTable,
        stale_ports: StalePortCleaner,
        body_reader: RequestBodyReader,
    ) -> None:
        self._virtual_machines = virtual_machines
        self._ports = ports
        self._stale_ports = stale_ports
        self._body_reader = body_reader

    def operations(self) -> list[Operation]:
        """Returns the operations."""
        return [
            Operation(
                "POST",
                "/port",
                "Plugs ports, all or none.",
                self._plug,
                request_body=InstancePortRequest | list[InstancePortRequest],
                errors=BODY_ERRORS,
            ),
            Operation("GET", "/port/{vmi}", "A plugged interface.", self._get, response=PluggedInterface),
            Operation(
                "DELETE", "/port/{vmi}", "Unplugs a port; a missing port is not an error.", self._unplug, WRITE_ERRORS
            ),
            Operation(
                "POST",
                "/syncports",
                "Announces that all ports will be posted again; those not posted within 60 s are unplugged.",
                self._sync,
                errors=(403,),
            ),
            Operation("PUT", "/enable-port/{vmi}", "Enables a port of type 2.", self._enable, WRITE_ERRORS),
            Operation("PUT", "/disable-port/{vmi}", "Disables a port of type 2.", self._disable, WRITE_ERRORS),
        ]

    async def _plug(self, request: web.Request) -> web.Response:
        async with self._body_reader.read(request) as body:
            await self._ports.plug(parse_instance_ports(body))
        return ok_response()

    async def _get(self, request: web.Request) -> web.Response:
        port = self._ports.by_interface(request.match_info["vmi"])
        virtual_machine = None if port is None else self._virtual_machines.by_uuid(port.vm_uuid)
        if port is None or virtual_machine is None:
            raise not_found()
        interface = next((each for each in virtual_machine.interfaces if each.uuid == port.vmi_uuid), None)
        if interface is None:
            raise not_found()
        return json_bytes_response(msgspec.json.encode(plugged_interface(virtual_machine, interface, port)))

    async def _unplug(self, request: web.Request) -> web.Response:
        await self._ports.unplug_instance(request.match_info["vmi"])
        return ok_response()

    async def _sync(self, _request: web.Request) -> web.Response:
        self._stale_ports.sync()
        return ok_response()

    async def _enable(self, request: web.Request) -> web.Response:
        await self._ports.set_link_state(request.match_info["vmi"], 1)
        return ok_response()

    async def _disable(self, request: web.Request) -> web.Response:
        await self._ports.set_link_state(request.match_info["vmi"], 0)
        return ok_response()
