"""Virtual machine interfaces: their MAC addresses, and the routing instance of their network."""

from tests.support.contrail_api.api_errors import ApiError, unknown_id
from tests.support.contrail_api.behaviour import Behaviour, Claim, nothing
from tests.support.contrail_api.references import Resolved
from tests.support.contrail_api.stored import Object, Stored

_MACS = "virtual_machine_interface_mac_addresses"


class VirtualMachineInterfaces(Behaviour):
    """Every interface refers to one network when it is created. MAC addresses are not checked."""

    def check_body(self, body: Object) -> None:
        if body.get("virtual_network_refs") is None:
            raise ApiError(500, "KeyError: 'virtual_network_refs'")
        if not body["virtual_network_refs"]:
            raise ApiError(500, "IndexError: list index out of range")
        network = body["virtual_network_refs"][0].get("uuid")
        if network and self.database.find("virtual-network", network) is None:
            raise unknown_id(network)

    def check_create(self, new: Stored) -> Claim:
        sent = (new.properties.get(_MACS) or {}).get("mac_address") or [_default_mac(new.uuid)]
        new.properties[_MACS] = {"mac_address": [mac.replace("-", ":") for mac in sent]}
        return nothing

    def check_update(self, stored: Stored, changed: Object, references: Resolved) -> None:
        if sent := (changed.get(_MACS) or {}).get("mac_address"):
            changed[_MACS] = {"mac_address": [mac.replace("-", ":") for mac in sent]}

    def created(self, stored: Stored) -> None:
        network = stored.only("virtual-network")
        for instance in self.database.children(network or "", "routing-instance"):
            self.database.refer(stored, "routing-instance", instance.uuid, {"direction": "both"})
        self.database.publish("update", stored)


def _default_mac(uuid: str) -> str:
    return ":".join(("02", uuid[0:2], uuid[2:4], uuid[4:6], uuid[6:8], uuid[9:11]))
