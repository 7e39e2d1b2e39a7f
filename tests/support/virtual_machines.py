"""Virtual machines as a manager writes them: the Contrail vrouter agent's sample and generated ones."""

import uuid

import msgspec

from contrail_config.objects import (
    InterfaceAddress,
    Pending,
    PodNetwork,
    VirtualMachine,
    VirtualMachineInterface,
    interface_mac,
    interface_uuid,
    network_uuid,
    virtual_machine_name,
)

NODE = "worker-1"

POD_NETWORK = ("default-domain", "k8s-default", "k8s-default-pod-network")
LEFT_NETWORK = ("default-domain", "k8s-default", "k8s-left-pod-network")

SAMPLE_VM = "aaaaaaaa-0000-4000-8000-000000000001"
SAMPLE_VMI = "159b591c-e57e-11f1-b951-02fc00000001"
SAMPLE_VN = "773d9c45-2a91-4829-ad2f-7f70a7bb2b67"


def sample_interface() -> VirtualMachineInterface:
    """The first interface in the Contrail vrouter agent's sample responses."""
    return VirtualMachineInterface(
        uuid=SAMPLE_VMI,
        mac="02:15:9b:59:1c:e5",
        network_uuid=SAMPLE_VN,
        network=POD_NETWORK,
        pod_network=PodNetwork.CLUSTER,
        addresses=(
            InterfaceAddress(
                "10.47.255.251", 12, gateway="10.47.255.254", dns=("10.47.255.253",), subnet_gateway="10.47.255.254"
            ),
            InterfaceAddress("fd00::5", 64, gateway="fd00::1", dns=("fd00::2",), subnet_gateway="fd00::1"),
        ),
    )


def left_interface(pod_uid: str, index: int) -> VirtualMachineInterface:
    """An interface in the network of the NAD `default/left`, with a requested name."""
    vmi_uuid = interface_uuid(pod_uid, index)
    return VirtualMachineInterface(
        uuid=vmi_uuid,
        mac=interface_mac(vmi_uuid),
        network_uuid=network_uuid(LEFT_NETWORK),
        network=LEFT_NETWORK,
        addresses=(InterfaceAddress(f"10.1.1.{10 + index}", 24),),
        nad="default/left",
        config_name="left",
        interface="left",
        attachment="left",
    )


def make_virtual_machine(
    pod: str = "p1",
    *,
    uid: str | None = None,
    interfaces: tuple[VirtualMachineInterface, ...] | None = None,
    node: str = NODE,
    config_hash: str | None = None,
) -> VirtualMachine:
    """The virtual machine of a pod, by default with a new uid and one interface in the pod network."""
    uid = uid or str(uuid.uuid4())
    if interfaces is None:
        interfaces = (pod_interface(uid),)
    return VirtualMachine(
        uuid=uid,
        name=virtual_machine_name("k8s", "default", pod),
        cluster="k8s",
        project="k8s-default",
        namespace="default",
        pod=pod,
        node=node,
        interfaces=interfaces,
        config_hash=config_hash,
    )


MISSING_NETWORK = Pending("NetworkNotFound", "network attachment definition default/blue not found")


def make_pending(pod: str = "p1", *, uid: str | None = None, pending: Pending = MISSING_NETWORK) -> VirtualMachine:
    """The pending virtual machine of a pod, by default with a new uid."""
    return msgspec.structs.replace(make_virtual_machine(pod, uid=uid, interfaces=()), pending=pending)


def pod_interface(pod_uid: str, index: int = 0) -> VirtualMachineInterface:
    """An interface in the pod network; its address is derived from its uuid."""
    vmi_uuid = interface_uuid(pod_uid, index)
    octets = uuid.UUID(vmi_uuid).bytes
    return VirtualMachineInterface(
        uuid=vmi_uuid,
        mac=interface_mac(vmi_uuid),
        network_uuid=SAMPLE_VN,
        network=POD_NETWORK,
        pod_network=PodNetwork.CLUSTER,
        addresses=(
            InterfaceAddress(
                f"10.32.{octets[0]}.{octets[1]}", 12, gateway="10.47.255.254", subnet_gateway="10.47.255.254"
            ),
        ),
    )
