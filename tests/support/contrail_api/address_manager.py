"""Address manager: one claim per address, made before the instance-ip is written."""

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.contrail_api.api_errors import ApiError
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.subnets import SubnetRecord

MAX_AUTOMATIC = 65_536
"""Addresses of one subnet that are allocated automatically."""


class AddressManager:
    """Claims of addresses; the claimant is the uuid of the instance-ip."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim_next(
        self, subnets: Sequence[SubnetRecord], claimant: str, *, network: object
    ) -> tuple[str, SubnetRecord]:
        """Claims the next free address of the first subnet that has one. Raises ApiError."""
        for subnet in subnets:
            for number in _candidates(subnet):
                # the bitmap of the server, not the claim, says what is free: one uuid may get several addresses
                if (path := _path(subnet, number)) not in self._database.claims:
                    self._database.claim(path, claimant)
                    return _text(subnet, number), subnet
        raise exhausted(network, subnets)

    def check(self, subnet: SubnetRecord, number: int, claimant: str) -> None:
        """Raises ApiError if an address is reserved or claimed by another one."""
        taken = self._database.claims.get(_path(subnet, number)) not in (None, claimant)
        if taken or subnet.is_reserved(number):
            raise ApiError(409, "IP address already in use")

    def claim(self, subnet: SubnetRecord, number: int, claimant: str) -> None:
        """Claims an address; that of the gateway is given without a claim, even twice. Raises ApiError."""
        path = _path(subnet, number)
        if number != subnet.gateway and (holder := self._database.claim(path, claimant)) is not None:
            raise ApiError(400, f"FQ Name: {path} exists already with ID: {holder} at zookeeper")

    def free(self, subnet: SubnetRecord, address: str, claimant: str) -> None:
        """Frees an address, if the claim is the claimant's."""
        self._database.unclaim(_path(subnet, int(ipaddress.ip_address(address))), claimant)

    def claimed(self, subnet: SubnetRecord) -> list[str]:
        """Returns the claimed addresses of a subnet."""
        prefix = _prefix(subnet)
        return [_text(subnet, int(path[len(prefix) :])) for path in self._database.claims if path.startswith(prefix)]


def exhausted(network: object, tried: Sequence[SubnetRecord]) -> ApiError:
    return ApiError(400, f"Virtual-Network({network}) has exhausted subnet({[subnet.cidr for subnet in tried]})")


def _candidates(subnet: SubnetRecord) -> Iterator[int]:
    for position, number in enumerate(subnet.automatic()):
        if position > MAX_AUTOMATIC:
            return
        if number != subnet.gateway and not subnet.is_reserved(number):
            yield number


def _prefix(subnet: SubnetRecord) -> str:
    return f"double/api-server/subnets/{subnet.owner}:{subnet.cidr}/"


def _path(subnet: SubnetRecord, number: int) -> str:
    return f"{_prefix(subnet)}{number:010d}"


def _text(subnet: SubnetRecord, number: int) -> str:
    kind: Any = ipaddress.IPv4Address if subnet.network.version == 4 else ipaddress.IPv6Address
    return str(kind(number))
