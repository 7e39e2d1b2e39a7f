"""Hypothesis strategies for config objects, as a manager writes them."""

import ipaddress
import string
from typing import Any

from hypothesis import strategies as st

from contrail_config.objects import (
    DefaultGateway,
    ForwardingMode,
    InterfaceAddress,
    PodNetwork,
    Route,
    Subnet,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
    interface_mac,
    virtual_machine_name,
)

NAMES = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=12)
UUIDS = st.uuids(version=4).map(str)
FQ_NAMES = st.tuples(st.just("default-domain"), NAMES, NAMES)
FAMILIES = st.sampled_from((4, 6))


@st.composite
def cidrs(draw: st.DrawFn, family: int | None = None, *, largest: int | None = None) -> str:
    """Networks of at least four addresses, in canonical form."""
    chosen = family or draw(FAMILIES)
    bits = 32 if chosen == 4 else 128
    length = draw(st.integers(8, largest or bits - 2))
    number = draw(st.integers(1, 2**length - 1)) << (bits - length)
    kind: Any = ipaddress.IPv4Network if chosen == 4 else ipaddress.IPv6Network
    return str(kind((number, length)))


@st.composite
def addresses_in(draw: st.DrawFn, cidr: str) -> str:
    """Addresses of a network, but neither the first nor the last."""
    network = ipaddress.ip_network(cidr)
    return str(network[draw(st.integers(1, min(network.num_addresses - 2, 2**20)))])


@st.composite
def subnets(draw: st.DrawFn) -> Subnet:
    cidr = draw(cidrs())
    excluded = draw(st.lists(addresses_in(cidr), max_size=3, unique=True))
    return Subnet(cidr, draw(st.none() | addresses_in(cidr)), tuple(excluded))


@st.composite
def networks(draw: st.DrawFn) -> VirtualNetwork:
    return VirtualNetwork(
        fq_name=draw(FQ_NAMES),
        uuid=draw(UUIDS),
        subnets=tuple(draw(st.lists(subnets(), max_size=3, unique_by=lambda each: each.cidr))),
        dns=tuple(draw(st.lists(st.ip_addresses().map(str), max_size=2))),
        mtu=draw(st.integers(576, 65_535)),
        routes=tuple(draw(st.lists(st.builds(Route, cidrs(), st.none() | st.ip_addresses().map(str)), max_size=2))),
        ip_fabric_snat=draw(st.booleans()),
        ip_fabric_forwarding=draw(st.booleans()),
        vni=draw(st.integers(1, 2**24 - 1)),
        nad=draw(st.none() | st.builds("{}/{}".format, NAMES, NAMES)),
        retired=draw(st.booleans()),
        forwarding_mode=draw(st.sampled_from(ForwardingMode)),
        namespace=draw(st.none() | NAMES),
    )


@st.composite
def interface_addresses(draw: st.DrawFn, family: int) -> InterfaceAddress:
    cidr = draw(cidrs(family))
    gateway = draw(st.none() | addresses_in(cidr))
    return InterfaceAddress(
        draw(addresses_in(cidr)), ipaddress.ip_network(cidr).prefixlen, gateway, (), subnet_gateway=gateway
    )


@st.composite
def interfaces(draw: st.DrawFn) -> VirtualMachineInterface:
    uuid = draw(UUIDS)
    families = draw(st.sampled_from(((4,), (6,), (4, 6))))
    return VirtualMachineInterface(
        uuid=uuid,
        mac=interface_mac(uuid),
        network_uuid=draw(UUIDS),
        network=draw(FQ_NAMES),
        addresses=tuple(draw(interface_addresses(family)) for family in families),
        mtu=draw(st.integers(576, 9000)),
        nad=draw(st.none() | st.builds("{}/{}".format, NAMES, NAMES)),
        config_name=draw(st.none() | NAMES),
        interface=draw(st.none() | NAMES),
        attachment=draw(st.none() | NAMES),
        default_gw=draw(st.none() | st.sampled_from(DefaultGateway)),
        vni=draw(st.integers(0, 2**24 - 1)),
        pod_network=draw(st.none() | st.sampled_from(PodNetwork)),
        forwarding_mode=draw(st.sampled_from(ForwardingMode)),
    )


@st.composite
def virtual_machines(draw: st.DrawFn) -> VirtualMachine:
    namespace, pod = draw(NAMES), draw(NAMES)
    return VirtualMachine(
        uuid=draw(UUIDS),
        name=virtual_machine_name("k8s", namespace, pod),
        cluster="k8s",
        project=f"k8s-{namespace}",
        namespace=namespace,
        pod=pod,
        node=draw(NAMES),
        interfaces=tuple(draw(st.lists(interfaces(), min_size=1, max_size=4, unique_by=lambda each: each.uuid))),
        config_hash=draw(st.none() | NAMES),
    )
