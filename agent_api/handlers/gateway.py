"""`/gateway`: simple gateways, added and deleted as in the Contrail vrouter agent; GET is our extension."""

import msgspec
from aiohttp import web

from agent_api.gateways.gateway import Gateway, GatewayName, parse_gateway_names, parse_gateways
from agent_api.gateways.table import GatewayTable
from agent_api.handlers.operation import BODY_ERRORS, Operation, json_bytes_response, ok_response
from agent_api.request_bodies import RequestBodyReader


class GatewayHandlers:
    """The endpoints of simple gateways."""

    def __init__(self, gateways: GatewayTable, body_reader: RequestBodyReader) -> None:
        self._gateways = gateways
        self._body_reader = body_reader

    def operations(self) -> list[Operation]:
        """Returns the operations."""
        return [
            Operation(
                "POST",
                "/gateway",
                "Adds gateways, all or none; replaces gateways of the same interface.",
                self._add,
                request_body=tuple[Gateway, ...],
                errors=BODY_ERRORS,
            ),
            Operation(
                "DELETE",
                "/gateway",
                "Deletes gateways; missing gateways are not an error.",
                self._delete,
                request_body=tuple[GatewayName, ...],
                errors=BODY_ERRORS,
            ),
            Operation("GET", "/gateway", "The gateways, by interface.", self._list, response=tuple[Gateway, ...]),
        ]

    async def _add(self, request: web.Request) -> web.Response:
        async with self._body_reader.read(request) as body:
            await self._gateways.add(parse_gateways(body))
        return ok_response()

    async def _delete(self, request: web.Request) -> web.Response:
        async with self._body_reader.read(request) as body:
            await self._gateways.delete(parse_gateway_names(body))
        return ok_response()

    async def _list(self, _request: web.Request) -> web.Response:
        return json_bytes_response(msgspec.json.encode(self._gateways.all()))
