"""A simple gateway: what `POST /gateway` says of it, and what its file holds."""

from typing import Annotated

import msgspec

from agent_api.request_bodies import check_items, decode_body
from agent_api.values import DeviceName, IPv4, SomeText


class GatewaySubnet(msgspec.Struct, frozen=True, rename="kebab"):
    """A subnet, or the destination of a route."""

    ip_address: IPv4
    prefix_len: Annotated[int, msgspec.Meta(ge=0, le=32)]


Subnets = Annotated[tuple[GatewaySubnet, ...], msgspec.Meta(max_length=256)]


class Gateway(msgspec.Struct, frozen=True, rename="kebab"):
    """A gateway: `subnets` are those of the virtual network, `routes` what it reaches outside."""

    interface: DeviceName
    routing_instance: SomeText
    subnets: Subnets
    routes: Subnets


class GatewayName(msgspec.Struct, frozen=True, rename="kebab"):
    """What a client says of a gateway to be deleted."""

    interface: DeviceName


_gateways = msgspec.json.Decoder(tuple[Gateway, ...])
_names = msgspec.json.Decoder(tuple[GatewayName, ...])


def parse_gateways(body: bytes) -> list[Gateway]:
    """Returns the gateways of an array. Raises BadRequestError."""
    return check_items(decode_body(body, _gateways), unique="interface")


def parse_gateway_names(body: bytes) -> list[str]:
    """Returns the interfaces that an array of gateways names. Raises BadRequestError."""
    return [each.interface for each in check_items(decode_body(body, _names), unique="interface")]
