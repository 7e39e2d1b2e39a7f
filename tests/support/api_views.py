"""Items of the manager's API for a small cluster: two networks, three pods, some events."""

import time

from contrail_config.objects import (
    DefaultGateway,
    Event,
    EventType,
    FqName,
    InterfaceAddress,
    Route,
    Subnet,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
)
from manager.api.types import InterfaceView, NetworkView, PodState, PodView

POD_NETWORK: FqName = ("default-domain", "k8s-default", "k8s-default-pod-network")
BLUE: FqName = ("default-domain", "k8s-shop", "k8s-blue-pod-network")
ROUTER_UID = "aaaaaaaa-0000-4000-8000-000000000001"
WAITING_UID = "aaaaaaaa-0000-4000-8000-000000000002"

NETWORKS = [
    NetworkView(VirtualNetwork(POD_NETWORK, "n0", (Subnet("10.32.0.0/12", "10.32.0.1"),), vni=1), interfaces=1),
    NetworkView(
        VirtualNetwork(
            BLUE,
            "n1",
            (Subnet("10.10.0.0/24", "10.10.0.1"), Subnet("fd00:10::/64", "fd00:10::1")),
            vni=2,
            mtu=9000,
            nad="shop/blue",
        ),
        interfaces=2,
    ),
]

INTERFACES = (
    VirtualMachineInterface(
        uuid="bbbbbbbb-0000-4000-8000-000000000000",
        mac="02:00:00:00:00:00",
        network_uuid="n0",
        network=POD_NETWORK,
        addresses=(InterfaceAddress("10.32.0.2", 12, "10.32.0.1"),),
    ),
    VirtualMachineInterface(
        uuid="bbbbbbbb-0000-4000-8000-000000000001",
        mac="02:00:00:00:00:01",
        network_uuid="n1",
        network=BLUE,
        addresses=(InterfaceAddress("10.10.0.2", 24, "10.10.0.1"), InterfaceAddress("fd00:10::2", 64, "fd00:10::1")),
        mtu=9000,
        routes=(Route("10.11.0.0/16", "10.10.0.1"), Route("10.12.0.0/16")),
        nad="shop/blue",
        config_name="blue",
        interface="web",
        attachment="web",
        default_gw=DefaultGateway.IPV4,
    ),
    VirtualMachineInterface(
        uuid="bbbbbbbb-0000-4000-8000-000000000002",
        mac="02:00:00:00:00:02",
        network_uuid="n1",
        network=BLUE,
        addresses=(InterfaceAddress("10.10.0.3", 24, "10.10.0.1"), InterfaceAddress("fd00:10::3", 64, "fd00:10::1")),
        mtu=9000,
        nad="shop/blue",
        config_name="blue",
        attachment="net2",
    ),
)

ROUTER = VirtualMachine(
    uuid=ROUTER_UID,
    name="k8s__shop__router",
    cluster="k8s",
    project="k8s-shop",
    namespace="shop",
    pod="router",
    node="worker-1",
    interfaces=INTERFACES,
)

PODS = [
    PodView("kube-system", "proxy", "aaaaaaaa-0000-4000-8000-000000000003", "worker-1", PodState.HOST_NETWORK),
    PodView("shop", "router", ROUTER_UID, "worker-1", PodState.READY, machine=ROUTER),
    PodView(
        "shop",
        "waiting",
        WAITING_UID,
        "worker-1",
        PodState.WAITING,
        reason="NetworkMissing",
        message="network shop/red not found",
    ),
]

INTERFACE_VIEWS = [
    InterfaceView("shop", "router", ROUTER_UID, "worker-1", index, name, interface)
    for index, (name, interface) in enumerate(zip(("eth0", "web", "eth2"), INTERFACES, strict=True))
]


def events() -> list[Event]:
    """Two events: a warning with count 3, last seen two hours ago, and one of three days ago."""
    now = time.time()
    return [
        Event(
            kind="Pod",
            namespace="shop",
            name="waiting",
            uid=WAITING_UID,
            type=EventType.WARNING,
            reason="NetworkMissing",
            message="network shop/red not found",
            count=3,
            first_seen=now - 90000,
            last_seen=now - 7230,
        ),
        Event(
            kind="NetworkAttachmentDefinition",
            namespace="shop",
            name="blue",
            uid="n1",
            type=EventType.NORMAL,
            reason="NetworkCreated",
            message="2 subnets",
            count=1,
            first_seen=now - 259230,
            last_seen=now - 259230,
        ),
    ]
