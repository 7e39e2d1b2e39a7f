"""Take-over in tests: what Contrail's kube-manager wrote, what our manager wants, and what the server has."""

from typing import Any

from contrail_config.objects import VirtualMachine, VirtualNetwork
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Made
from tests.support.virtual_networks import make_network

NAD = "net-a"
CIDR, GATEWAY = "10.1.1.0/24", "10.1.1.254"
POD_CIDR, POD_GATEWAY = "10.32.0.0/24", "10.32.0.254"
UID = "0a000000-0000-4000-8000-000000000001"


def wanted_network(**fields: Any) -> VirtualNetwork:
    """The NAD's network as our manager would make it: with another uuid and gateway."""
    return make_network(f"k8s-{NAD}-pod-network", CIDR, nad=f"default/{NAD}", **fields)


def wanted_pod_network(*cidrs: str) -> VirtualNetwork:
    return make_network("k8s-default-pod-network", *(cidrs or (POD_CIDR,)))


Content = dict[str, tuple[tuple[str, ...], dict[str, object], dict[str, object]]]


def content(double: ContrailApi) -> Content:
    """All objects by uuid: names, properties but annotations and times, and references."""
    return {
        stored.uuid: (
            stored.fq_name,
            {key: value for key, value in stored.properties.items() if key not in ("annotations", "id_perms")},
            {kind: dict(targets) for kind, targets in stored.references.items()},
        )
        for stored in double.database.objects.values()
    }


def annotations(double: ContrailApi, made: Made) -> dict[str, str]:
    pairs = double.database.objects[made.uuid].properties["annotations"]["key_value_pair"]
    return {pair["key"]: pair["value"] for pair in pairs}


def address_text(double: ContrailApi, made: Made) -> str:
    return str(double.database.objects[made.uuid].properties["instance_ip_address"])


def mac_of(double: ContrailApi, made: Made) -> str:
    macs = double.database.objects[made.uuid].properties["virtual_machine_interface_mac_addresses"]
    return str(macs["mac_address"][0])


async def taken_over(open_vnc: OpenVnc) -> tuple[VncStore, VirtualMachine]:
    store = await open_vnc(take_over=True)
    return store, await store.virtual_machine(UID)
