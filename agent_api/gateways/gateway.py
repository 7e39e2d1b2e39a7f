"""A simple gateway, as in the body of `POST /gateway` and in its file."""

from typing import Annotated

import msgspec

from agent_api.field_types import DeviceName, IPv4, NonEmptyText
from agent_api.request_decoding import decode_body, validate_items


class GatewaySubnet(msgspec.Struct, frozen=True, rename="kebab"):
    """A subnet or the destination of a route."""

    ip_address: IPv4
    prefix_len: Annotated[int, msgspec.Meta(ge=0, le=32)]


Subnets = Annotated[tuple[GatewaySubnet, ...], msgspec.Meta(max_length=256)]


class Gateway(msgspec.Struct, frozen=True, rename="kebab"):
    """A gateway: `subnets` of the virtual network, and `routes` to external destinations."""

    interface: DeviceName
    routing_instance: NonEmptyText
    subnets: Subnets
    routes: Subnets


class GatewayName(msgspec.Struct, frozen=True, rename="kebab"):
    """A gateway to delete."""

    interface: DeviceName


_gateways = msgspec.json.Decoder(tuple[Gateway, ...])
_names = msgspec.json.Decoder(tuple[GatewayName, ...])


def parse_gateways(body: bytes) -> list[Gateway]:
    """Returns the gateways in a body. Raises BadRequestError."""
    return validate_items(decode_body(body, _gateways), unique="interface")


def parse_gateway_names(body: bytes) -> list[str]:
    """Returns the interfaces of the gateways in a body. Raises BadRequestError."""
    return [each.interface for each in validate_items(decode_body(body, _names), unique="interface")]
