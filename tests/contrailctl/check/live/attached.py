"""Temporary pods with interfaces, as the store has them."""

from typing import Any

from contrail_config.objects import InterfaceAddress, PodNetwork, VirtualMachineInterface, network_uuid
from contrailctl.check.live.plan import Attached, LivePod

_POD_NETWORK = "k8s-default-pod-network"


def pod_in(network: str, node: int, *, prefix: str = "10.7.0", gateway: bool = True, **fields: Any) -> Attached:
    """A pod on a node (a number) in the network of a NAD, with an address in both families that has its number."""
    name = ("default-domain", "k8s-demo", f"k8s-{network}-pod-network")
    nad = f"demo/{network}"
    return Attached(LivePod(f"{network}-{node}", f"node-{node}", nad), _interface(name, node, prefix, gateway, fields))


def pod_at_index_0(node: int, **fields: Any) -> Attached:
    """A pod on a node (a number) in the cluster pod network."""
    name = ("default-domain", "k8s-default", _POD_NETWORK)
    fields = {"pod_network": PodNetwork.CLUSTER, **fields}
    return Attached(LivePod(f"zero-{node}", f"node-{node}"), _interface(name, node, "10.32.0", True, fields))


def _interface(
    name: tuple[str, str, str], number: int, prefix: str, gateway: bool, fields: dict[str, Any]
) -> VirtualMachineInterface:
    gateways = (f"{prefix}.1", "fd07::1") if gateway else (None, None)
    addresses = (
        InterfaceAddress(f"{prefix}.1{number}", 24, gateway=gateways[0], subnet_gateway=gateways[0]),
        InterfaceAddress(f"fd07::{prefix.rpartition('.')[0].replace('.', ':')}:1{number}", 64,
                         gateway=gateways[1], subnet_gateway=gateways[1]),
    )  # fmt: skip
    return VirtualMachineInterface(
        uuid=f"{name[2]}-{number}",
        mac=f"02:00:00:00:00:1{number}",
        network_uuid=network_uuid(name),
        network=name,
        **{"addresses": addresses, **fields},
    )
