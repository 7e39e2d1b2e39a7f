"""Instance-ips: which subnet and address each gets."""

import ipaddress
from functools import partial

from tests.support.contrail_api.address_manager import AddressManager, exhausted
from tests.support.contrail_api.api_errors import ApiError, bad_property, unknown_id
from tests.support.contrail_api.behaviour import Behaviour, Claim
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.references import Resolved
from tests.support.contrail_api.stored import Object, Stored
from tests.support.contrail_api.subnets import IpAddress, SubnetRecord, parse
from tests.support.contrail_api.virtual_networks import is_flat, own_subnets

_FAMILIES = ("v4", "v6")


class InstanceIps(Behaviour):
    """The address is allocated with the first network, and never changes."""

    def __init__(self, database: Database, addresses: AddressManager) -> None:
        super().__init__(database)
        self._addresses = addresses

    def check_body(self, body: Object) -> None:
        if body.get("instance_ip_family") not in (None, *_FAMILIES):
            raise bad_property("instance_ip_family", f"value must be one of {list(_FAMILIES)}")

    def check_create(self, new: Stored) -> Claim:
        network = self._network(new)
        subnets = self._fitting(new, network)
        requested = _requested(new)
        if requested is None:
            return partial(self._claim_next, new, subnets, list(network.fq_name))
        subnet = _around(subnets, requested, network)
        interfaces = new.references.get("virtual-machine-interface", {})
        if int(requested) == subnet.gateway and any(map(self._has_virtual_machine, interfaces)):
            raise _gateway_used()
        self._addresses.check(subnet, int(requested), new.uuid)
        return partial(self._claim, new, subnet, requested)

    def check_update(self, stored: Stored, changed: Object, references: Resolved) -> None:
        current = stored.properties.get("instance_ip_address")
        if changed.get("instance_ip_address") not in (None, current):
            raise ApiError(400, "Instance IP Address can not be changed")
        self._check_network_exists(stored)
        for interface in references.get("virtual-machine-interface", {}):
            self._check_gateway(stored, interface)

    def check_reference(self, stored: Stored, kind: str, target: str) -> None:
        self._check_network_exists(stored)
        if kind == "virtual-machine-interface":
            self._check_gateway(stored, target)

    def check_delete(self, stored: Stored) -> None:
        network = stored.only("virtual-network")
        if network is not None and self.database.find("virtual-network", network) is None:
            raise ApiError(500, "Virtual Network(['ERROR']) not found")

    def deleted(self, stored: Stored) -> None:
        network = self.database.find("virtual-network", stored.only("virtual-network") or "")
        if network is None:
            return
        address = ipaddress.ip_address(stored.properties["instance_ip_address"])
        for subnet in self._subnets(network):
            if address in subnet.network:
                self._addresses.free(subnet, str(address), stored.uuid)

    def _claim_next(self, new: Stored, subnets: list[SubnetRecord], network: object) -> None:
        address, subnet = self._addresses.claim_next(subnets, new.uuid, network=network)
        new.properties |= {"instance_ip_address": address, "subnet_uuid": subnet.uuid}

    def _claim(self, new: Stored, subnet: SubnetRecord, address: IpAddress) -> None:
        self._addresses.claim(subnet, int(address), new.uuid)
        new.properties |= {"instance_ip_address": str(address), "subnet_uuid": subnet.uuid}

    def _network(self, new: Stored) -> Stored:
        uuid = new.only("virtual-network")
        if uuid is None:
            raise ApiError(400, "can only join an iterable")
        network = self.database.find("virtual-network", uuid)
        if network is None:
            raise unknown_id(uuid)
        return network

    def _fitting(self, new: Stored, network: Stored) -> list[SubnetRecord]:
        """Returns the subnets that the address may be of. Raises ApiError if there are none."""
        name = list(network.fq_name)
        subnets = self._subnets(network)
        if network.references.get("network-ipam") and not subnets:
            raise ApiError(400, f"Virtual-Network({name}) has no defined subnets")
        wanted = new.properties.get("subnet_uuid")
        if wanted and all(subnet.uuid != wanted for subnet in subnets):
            raise ApiError(400, f"Virtual-Network({name}) has invalid subnet({wanted})")
        family = new.properties.get("instance_ip_family")
        fitting = [one for one in subnets if wanted in (None, one.uuid) and family in (None, one.family)]
        if not fitting:
            raise exhausted(name, [])
        return fitting

    def _subnets(self, network: Stored) -> list[SubnetRecord]:
        """Returns the subnets of the network's links, then those of its IPAMs."""
        links = network.references.get("network-ipam", {})
        found = own_subnets(":".join(network.fq_name), links)
        for ipam in (self.database.objects[uuid] for uuid in links if uuid in self.database.objects):
            if is_flat(ipam):
                subnets = (ipam.properties.get("ipam_subnets") or {}).get("subnets", [])
                found += [parse(subnet, ":".join(ipam.fq_name)) for subnet in subnets]
        return found

    def _check_network_exists(self, stored: Stored) -> None:
        network = stored.only("virtual-network")
        if network is not None and self.database.find("virtual-network", network) is None:
            raise unknown_id(network)

    def _check_gateway(self, stored: Stored, interface: str) -> None:
        network = self.database.find("virtual-network", stored.only("virtual-network") or "")
        if network is None or not self._has_virtual_machine(interface):
            return
        address = ipaddress.ip_address(stored.properties["instance_ip_address"])
        if any(address in one.network and int(address) == one.gateway for one in self._subnets(network)):
            raise _gateway_used()

    def _has_virtual_machine(self, interface: str) -> bool:
        found = self.database.find("virtual-machine-interface", interface)
        return found is not None and found.only("virtual-machine") is not None


def _requested(new: Stored) -> IpAddress | None:
    text = new.properties.get("instance_ip_address")
    if not text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise ApiError(500, "</pre>") from error


def _around(subnets: list[SubnetRecord], address: IpAddress, network: Stored) -> SubnetRecord:
    for subnet in subnets:
        if address in subnet.network:
            return subnet
    raise exhausted(list(network.fq_name), [])


def _gateway_used() -> ApiError:
    return ApiError(400, "Gateway IP cannot be used by VM port")
