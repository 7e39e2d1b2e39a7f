"""`/gateway`: simple gateways, added and deleted as with upstream's agent; that they can be listed is ours."""

import msgspec
from aiohttp import web

from agent_api.gateways.gateway import Gateway, GatewayName, parse_gateway_names, parse_gateways
from agent_api.gateways.table import GatewayTable
from agent_api.handlers.operation import ERRORS_OF_A_BODY, Operation, answer_json, done
from agent_api.request_bodies import RequestBodyReader


class GatewayPages:
    """The pages of simple gateways."""

    def __init__(self, gateways: GatewayTable, bodies: RequestBodyReader) -> None:
        self._gateways = gateways
        self._bodies = bodies

    def operations(self) -> list[Operation]:
        """Returns the pages."""
        return [
            Operation(
                "POST",
                "/gateway",
                "Adds gateways, all or none; one of the same interface is replaced.",
                self._add,
                body=tuple[Gateway, ...],
                errors=ERRORS_OF_A_BODY,
            ),
            Operation(
                "DELETE",
                "/gateway",
                "Deletes gateways; those that are not there are no error.",
                self._delete,
                body=tuple[GatewayName, ...],
                errors=ERRORS_OF_A_BODY,
            ),
            Operation("GET", "/gateway", "The gateways, by interface.", self._show, answer=tuple[Gateway, ...]),
        ]

    async def _add(self, request: web.Request) -> web.Response:
        async with self._bodies.of(request) as body:
            await self._gateways.add(parse_gateways(body))
        return done()

    async def _delete(self, request: web.Request) -> web.Response:
        async with self._bodies.of(request) as body:
            await self._gateways.delete(parse_gateway_names(body))
        return done()

    async def _show(self, _request: web.Request) -> web.Response:
        return answer_json(msgspec.json.encode(self._gateways.all()))
