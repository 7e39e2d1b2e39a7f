"""`/port`, `/enable-port`, `/disable-port` and `/syncports`: the ports of instances, for nova and vCenter."""

import msgspec
from aiohttp import web

from agent_api.handlers.operation import ERRORS_OF_A_BODY, ERRORS_OF_A_WRITE, Operation, answer_json, done, not_found
from agent_api.ports.instance import InstancePortRequest, parse_instance_ports
from agent_api.ports.stale import StalePorts
from agent_api.ports.table import PortTable
from agent_api.request_bodies import RequestBodyReader
from agent_api.responses import PluggedInterface, plugged_interface
from agent_api.virtual_machine_index import VirtualMachineIndex


class InstancePages:
    """The pages by which orchestrators of virtual machines plug, read and free."""

    def __init__(
        self, machines: VirtualMachineIndex, ports: PortTable, stale: StalePorts, bodies: RequestBodyReader
    ) -> None:
        self._machines = machines
        self._ports = ports
        self._stale = stale
        self._bodies = bodies

    def operations(self) -> list[Operation]:
        """Returns the pages."""
        return [
            Operation(
                "POST",
                "/port",
                "Plugs ports, all or none.",
                self._plug,
                body=InstancePortRequest | list[InstancePortRequest],
                errors=ERRORS_OF_A_BODY,
            ),
            Operation("GET", "/port/{vmi}", "A plugged interface.", self._show, answer=PluggedInterface),
            Operation(
                "DELETE",
                "/port/{vmi}",
                "Frees a port; one that is not there is no error.",
                self._unplug,
                errors=ERRORS_OF_A_WRITE,
            ),
            Operation(
                "POST",
                "/syncports",
                "Says that all ports will be posted again; those that are not within 60 s are freed.",
                self._sync,
                errors=(403,),
            ),
            Operation("PUT", "/enable-port/{vmi}", "Enables a port of type 2.", self._enable, errors=ERRORS_OF_A_WRITE),
            Operation(
                "PUT", "/disable-port/{vmi}", "Disables a port of type 2.", self._disable, errors=ERRORS_OF_A_WRITE
            ),
        ]

    async def _plug(self, request: web.Request) -> web.Response:
        async with self._bodies.of(request) as body:
            await self._ports.plug(parse_instance_ports(body))
        return done()

    async def _show(self, request: web.Request) -> web.Response:
        port = self._ports.of_interface(request.match_info["vmi"])
        machine = None if port is None else self._machines.with_uuid(port.vm_uuid)
        if port is None or machine is None:
            raise not_found()
        interface = next((each for each in machine.interfaces if each.uuid == port.vmi_uuid), None)
        if interface is None:
            raise not_found()
        return answer_json(msgspec.json.encode(plugged_interface(machine, interface, port)))

    async def _unplug(self, request: web.Request) -> web.Response:
        await self._ports.unplug_instance(request.match_info["vmi"])
        return done()

    async def _sync(self, _request: web.Request) -> web.Response:
        self._stale.sync()
        return done()

    async def _enable(self, request: web.Request) -> web.Response:
        await self._ports.set_link_state(request.match_info["vmi"], 1)
        return done()

    async def _disable(self, request: web.Request) -> web.Response:
        await self._ports.set_link_state(request.match_info["vmi"], 0)
        return done()
