"""Virtual networks: subnets of their IPAM links, network ids, and the routing instance of each."""

import ipaddress
import uuid
from functools import partial
from typing import Any

from tests.support.contrail_api import network_numbers
from tests.support.contrail_api.address_manager import AddressManager
from tests.support.contrail_api.api_errors import ApiError, bad_property
from tests.support.contrail_api.behaviour import Behaviour, Claim
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.references import Resolved
from tests.support.contrail_api.stored import Object, Stored, common_properties
from tests.support.contrail_api.subnets import SubnetRecord, completed, parse

LARGEST_MTU = 9216


class VirtualNetworks(Behaviour):
    """Subnets may be added; those of allocated addresses may not go, and no gateway may change."""

    def __init__(self, database: Database, addresses: AddressManager) -> None:
        super().__init__(database)
        self._addresses = addresses

    def check_body(self, body: Object) -> None:
        if body.get("virtual_network_network_id") is not None:
            raise ApiError(403, "Cannot set the virtual network ID")
        if not 0 <= (body.get("mtu") or 0) <= LARGEST_MTU:
            raise bad_property("mtu", f"value must be between 0 and {LARGEST_MTU}")

    def check_create(self, new: Stored) -> Claim:
        if new.parent is None:
            raise ApiError(500, "KeyError: 'parent_uuid'")
        self._complete(new, new.references)
        return partial(self._claim_numbers, new)

    def _claim_numbers(self, new: Stored) -> None:
        if (vxlan_id := _vxlan_id(new.properties)) is not None:
            network_numbers.claim_vxlan_id(self.database, vxlan_id, new.uuid)
        number = network_numbers.claim_lowest(self.database, f"{new.uuid}/id")
        new.properties |= {"virtual_network_network_id": number, "is_shared": bool(new.properties.get("is_shared"))}

    def check_update(self, stored: Stored, changed: Object, references: Resolved) -> None:
        if changed.get("virtual_network_network_id") not in (None, stored.properties["virtual_network_network_id"]):
            raise ApiError(403, "Cannot update the virtual network ID")
        if "network-ipam" in references:
            self._complete(stored, references)
            self._check_subnets(stored, references)

    def created(self, stored: Stored) -> None:
        name = stored.fq_name[-1]
        instance = Stored(
            KINDS["routing-instance"], str(uuid.uuid4()), (*stored.fq_name, name), (stored.kind.name, stored.uuid)
        )
        instance.properties = common_properties(instance.uuid, {}, name)
        self.database.write(instance)

    def deleted(self, stored: Stored) -> None:
        self._free_numbers(stored)

    def _free_numbers(self, network: Stored) -> None:
        network_numbers.free(self.database, network.properties["virtual_network_network_id"], f"{network.uuid}/id")
        network_numbers.free(self.database, _vxlan_id(network.properties), network.uuid)

    def _complete(self, network: Stored, references: Resolved) -> None:
        """Adds the defaults of subnets to links in place."""
        for ipam, attributes in references.get("network-ipam", {}).items():
            if attributes is None:
                raise ApiError(400, "Bad Request: network_ipam_refs has no attr")
            given = attributes.get("ipam_subnets") or []
            if is_flat(self.database.objects[ipam]):
                shared = given[0]["subnet_uuid"] if given else str(uuid.uuid4())
                attributes["ipam_subnets"] = [{"subnet_uuid": shared}]
            else:
                attributes["ipam_subnets"] = completed(given, ":".join(network.fq_name))

    def _check_subnets(self, stored: Stored, references: Resolved) -> None:
        owner = ":".join(stored.fq_name)
        after = {subnet.cidr: subnet for subnet in own_subnets(owner, references.get("network-ipam", {}))}
        for before in own_subnets(owner, stored.references.get("network-ipam", {})):
            now = after.get(before.cidr)
            if now is None and (claimed := self._addresses.claimed(before)):
                lowest = min(claimed, key=ipaddress.ip_address)
                raise ApiError(409, f"Cannot Delete IP Block, IP({lowest}) is in use")
            if now is not None and now.gateway != before.gateway:
                raise ApiError(500, f"Virtual-Network({owner}:{before.cidr}) has invalid subnet({before.cidr})")


def is_flat(ipam: Stored) -> bool:
    """Whether the subnets belong to the IPAM rather than to its links."""
    return ipam.properties.get("ipam_subnet_method") == "flat-subnet"


def own_subnets(owner: str, links: dict[str, Any]) -> list[SubnetRecord]:
    """Returns the subnets that a network's links to IPAMs hold, in their order."""
    return [
        parse(subnet, owner)
        for link in links.values()
        for subnet in (link or {}).get("ipam_subnets", [])
        if "subnet" in subnet
    ]


def _vxlan_id(properties: Object) -> int | None:
    number = (properties.get("virtual_network_properties") or {}).get("vxlan_network_identifier")
    return None if number is None else int(number)
