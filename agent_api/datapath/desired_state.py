"""Desired state of the node's datapath: its networks and plugged ports, computed from virtual machines. Pure.

A network exists as soon as a virtual machine of this node has an interface in it, so that it is programmed before ADD
asks; a port exists once it is plugged. Interfaces without a VNI are not connected. Networks are identified on the node
by their VNI alone; two networks with one VNI are both left out, since programming them would connect them. So are
interfaces and other nodes whose VNI is not that of the network in this node's slice, and ports with a reserved MAC. Of
index 0 those networks are left out that `index_0` refuses.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from agent_api.datapath.fabric import Fabric, PodNetwork, RemoteAddress, RemoteBlock, RemoteEndpoint, RemoteNode, Tunnel
from agent_api.datapath.index_0 import interface_problem, isolated_network, refused_index_0, subnets_of
from agent_api.datapath.number_refusals import node_refusals, number_refusal
from agent_api.datapath.refusals import (
    FABRIC_SUBNETS,
    NetworkName,
    with_equal_vni,
    with_reserved_mac,
    with_reserved_macs,
    without_vni,
)
from contrail_config.objects import (
    ForwardingMode,
    FqName,
    InterfaceAddress,
    Refusal,
    VirtualMachine,
    VirtualMachineInterface,
    pod_network_name,
)

INDEX_0 = 0
"""Number of index 0 where other networks have their VNI."""

LinkOf = Callable[[VirtualMachine, VirtualMachineInterface], str | None]
"""Returns the host end of an interface, None if it is not plugged."""


class _State(msgspec.Struct, frozen=True, rename="kebab"):
    """Base of the structs, which are sent as JSON."""


class DesiredPort(_State, frozen=True):
    """A plugged port: `link` is its host end, `addresses` are those that it may use, without prefix length.

    `mtu` is that of its interface: ADD has given it to both ends.
    """

    link: str
    mac: str
    addresses: tuple[str, ...]
    mtu: int


class DesiredNetwork(_State, frozen=True, omit_defaults=True):
    """A network: `gateways` are those of its subnets, with prefix length.

    `mtu` is the lowest of its interfaces, `largest_mtu` the highest if that is another, as after a change.
    `routed`: pods reach even their own subnets by the gateways. `remotes` and `remote_blocks` are what other nodes have
    of it. While it is not `complete` some may be missing, so none is to be removed.
    """

    vni: int
    mtu: int
    gateways: tuple[str, ...]
    snat: bool
    forwarding: bool
    ports: tuple[DesiredPort, ...]
    remotes: tuple[RemoteEndpoint, ...] = ()
    remote_blocks: tuple[RemoteBlock, ...] = ()
    complete: bool = True
    routed: bool = False
    largest_mtu: int | None = None


class RoutedNetwork(_State, frozen=True, omit_defaults=True):
    """The cluster's pod network across nodes: blocks of this node, and what other nodes have. As `DesiredNetwork`.

    `mtu` is the highest of its interfaces: the node routes, so whoever sends more than fits is told.
    `addresses` are those of the node itself in its blocks, with which it sends to pods of other nodes, and
    `node_addresses` those of other nodes.
    """

    vni: int
    mtu: int
    own_blocks: tuple[str, ...]
    remotes: tuple[RemoteBlock, ...]
    complete: bool = True
    addresses: tuple[str, ...] = ()
    node_addresses: tuple[RemoteAddress, ...] = ()


class RoutedPort(_State, frozen=True):
    """A plugged port of index 0; `gateways` are those of its subnets, without prefix length.

    `mtu` as in `DesiredPort`. `network` is the number of its network, from which it reaches no other one; 0 is the
    cluster pod network.
    """

    link: str
    mac: str
    addresses: tuple[str, ...]
    mtu: int
    gateways: tuple[str, ...]
    network: int = 0


class Masquerade(_State, frozen=True):
    """Packets of routed ports to the outside get the node's address; `excluded` are the networks that are inside."""

    excluded: tuple[str, ...] = ()


INSIDE_ONLY = Masquerade()
"""Masquerade that excludes only the subnets of routed ports."""


class DesiredState(_State, frozen=True, omit_defaults=True):
    """All networks by VNI, the routed ports by link, and how these appear outside (None: with their own addresses).

    `fabric_subnets` are the networks (CIDRs) in which a subnet with `forwarding` may get a route. `tunnel` is None
    while networks end at this node. `nodes` are the other nodes of networks of this node.
    """

    networks: tuple[DesiredNetwork, ...]
    routed: tuple[RoutedPort, ...]
    masquerade: Masquerade | None
    fabric_subnets: tuple[str, ...] = ()
    tunnel: Tunnel | None = None
    nodes: tuple[RemoteNode, ...] = ()
    routed_network: RoutedNetwork | None = None

    @property
    def port_count(self) -> int:
        """The number of plugged ports."""
        return len(self.routed) + sum(len(network.ports) for network in self.networks)

    @property
    def remote_count(self) -> int:
        """The number of endpoints, blocks and single addresses of other nodes."""
        routed = () if self.routed_network is None else self.routed_network.remotes
        return len(routed) + sum(len(each.remotes) + len(each.remote_blocks) for each in self.networks)

    @property
    def incomplete_count(self) -> int:
        """The number of networks of which slices may be missing."""
        networks = (*self.networks, *(() if self.routed_network is None else (self.routed_network,)))
        return sum(not network.complete for network in networks)


class DatapathOptions(NamedTuple):
    """What the operator configures: `masquerade` of index 0, and where networks of tenants may get routes (CIDRs)."""

    masquerade: Masquerade | None = INSIDE_ONLY
    fabric_subnets: tuple[str, ...] = FABRIC_SUBNETS


DEFAULT_OPTIONS = DatapathOptions()


class Computation(NamedTuple):
    """The desired state, its networks' names by VNI, and the networks left out of it.

    `uuids` are of the networks whose slices it has, by VNI, 0 for the pod network.
    """

    state: DesiredState
    names: dict[int, FqName]
    refused: tuple[Refusal, ...]
    uuids: Mapping[int, str] = MappingProxyType({})


class _Attached(NamedTuple):
    """An interface of a network, and its host end if it is plugged."""

    interface: VirtualMachineInterface
    link: str | None


def desired_state(
    virtual_machines: Sequence[VirtualMachine],
    link_of: LinkOf,
    options: DatapathOptions,
    fabric: Fabric | None = None,
) -> Computation:
    """Returns the desired state for the virtual machines of this node; without a `fabric` networks end at this node."""
    networks = defaultdict[int, list[_Attached]](list)
    index_0: list[_Attached] = []
    spanning: list[VirtualMachineInterface] = []
    refused: dict[str, Refusal] = {}
    disagreeing: dict[tuple[str, int], Refusal] = {}
    for virtual_machine in virtual_machines:
        for index, interface in enumerate(virtual_machine.interfaces):
            attached = _Attached(interface, link_of(virtual_machine, interface))
            if index == 0:
                index_0.append(attached)
                spanning += [interface] if spans_nodes(virtual_machine, index) else []
            elif (disagreement := number_refusal(interface, fabric)) is not None:
                disagreeing[interface.network_uuid, interface.vni] = disagreement
            elif interface.vni:
                networks[interface.vni].append(attached)
            else:
                refused[interface.network_uuid] = without_vni(NetworkName(0, interface.network))
    names = _names(networks, index_0)
    for vni, found in names.items():
        refused |= _sharing(vni, found)
    refused |= refused_index_0(virtual_machines, lambda *each: link_of(*each) is not None, options.fabric_subnets)
    served = (_network(vni, attached) for vni, attached in sorted(networks.items()) if len(names[vni]) == 1)
    routed, problems = _routed(index_0, refused)
    state = DesiredState(
        networks=tuple(served),
        routed=routed,
        masquerade=_excluding(options.masquerade, {subnet for each in index_0 for subnet in _subnets(each.interface)}),
        fabric_subnets=options.fabric_subnets,
    )
    uuids: dict[int, str] = {}
    if fabric is not None:
        uuids = {vni: attached[0].interface.network_uuid for vni, attached in networks.items()}
        pod_network = _pod_network(spanning, fabric)
        state = _across_nodes(state, uuids, spanning, pod_network, fabric)
        uuids |= {} if pod_network is None else {INDEX_0: pod_network.uuid}
    only = {vni: next(iter(found.values())) for vni, found in names.items() if len(found) == 1}
    others = node_refusals((attached[0].interface for attached in networks.values()), fabric)
    of_networks = {**with_reserved_macs(virtual_machines), **problems, **refused}
    return Computation(state, only, (*of_networks.values(), *disagreeing.values(), *others), uuids)


def _sharing(vni: int, networks: Mapping[str, FqName]) -> dict[str, Refusal]:
    """Returns the refusals of networks with one VNI, by uuid; none if there is only one."""
    if len(networks) == 1:
        return {}
    return {
        uuid: with_equal_vni(
            NetworkName(vni, name), sorted(":".join(other) for each, other in networks.items() if each != uuid)
        )
        for uuid, name in networks.items()
    }


def _routed(
    index_0: Iterable[_Attached], refused: Mapping[str, Refusal]
) -> tuple[tuple[RoutedPort, ...], dict[str, Refusal]]:
    """Returns the ports of index 0 that are connected, and why others are not although their network is."""
    ports = []
    problems = {}
    for interface, link in index_0:
        problem = interface_problem(interface)
        if problem is not None:
            problems[interface.network_uuid] = problem
        elif link is not None and not (isolated_network(interface) and interface.network_uuid in refused):
            ports.append(_routed_port(interface, link))
    return tuple(sorted(ports, key=lambda port: port.link)), problems


def spans_nodes(virtual_machine: VirtualMachine, index: int) -> bool:
    """Returns whether the network of this interface reaches other nodes.

    At index 0 only the cluster's pod network does: nodes route it by address alone, and those of others may be equal.
    """
    interface = virtual_machine.interfaces[index]
    return bool(interface.vni) and (index > 0 or interface.network == pod_network_name(virtual_machine.cluster))


def _across_nodes(
    state: DesiredState,
    uuids: Mapping[int, str],
    spanning: Sequence[VirtualMachineInterface],
    pod_network: PodNetwork | None,
    fabric: Fabric,
) -> DesiredState:
    tunnel = fabric.tunnel
    return msgspec.structs.replace(
        state,
        networks=tuple(_remotes_of(network, uuids[network.vni], tunnel, fabric) for network in state.networks),
        tunnel=tunnel,
        nodes=fabric.nodes,
        routed_network=None if pod_network is None else _routed_network(pod_network, spanning, tunnel, fabric),
    )


def _remotes_of(network: DesiredNetwork, uuid: str, tunnel: Tunnel | None, fabric: Fabric) -> DesiredNetwork:
    return msgspec.structs.replace(
        network,
        remotes=() if tunnel is None else fabric.endpoints(uuid, network.vni, tunnel),
        remote_blocks=() if tunnel is None else fabric.blocks(uuid, network.vni, tunnel),
        complete=fabric.is_complete(uuid),
    )


def _pod_network(interfaces: Sequence[VirtualMachineInterface], fabric: Fabric) -> PodNetwork | None:
    if interfaces:
        return PodNetwork(interfaces[0].network_uuid, interfaces[0].vni)
    return fabric.pod_network  # the node itself reaches pods on other nodes


def _routed_network(
    pod_network: PodNetwork, interfaces: Sequence[VirtualMachineInterface], tunnel: Tunnel | None, fabric: Fabric
) -> RoutedNetwork | None:
    uuid, vni = pod_network
    if tunnel is None and fabric.is_complete(uuid):
        return None  # else it may be known in a moment, and nothing is to be removed until then
    number = fabric.number(uuid)  # nodes route index 0 by address, so a pod of an older number is no exception
    vni = vni if number is None else number
    return RoutedNetwork(
        vni=vni,
        mtu=max((interface.mtu for interface in interfaces), default=fabric.mtu),
        own_blocks=fabric.own_blocks(uuid),
        remotes=() if tunnel is None else fabric.blocks(uuid, vni, tunnel),
        complete=fabric.is_complete(uuid),
        addresses=fabric.own_addresses(uuid),
        node_addresses=() if tunnel is None else fabric.node_addresses(uuid, vni, tunnel),
    )


def _excluding(masquerade: Masquerade | None, inside: set[str]) -> Masquerade | None:
    return None if masquerade is None else Masquerade(tuple(sorted(inside.union(masquerade.excluded))))


def _subnets(interface: VirtualMachineInterface) -> list[str]:
    return [str(subnet) for subnet in subnets_of(interface)]


def _network(vni: int, attached: list[_Attached]) -> DesiredNetwork:
    interfaces = [each.interface for each in attached]
    ports = (
        _port(each.interface, each.link)
        for each in attached
        if each.link is not None and with_reserved_mac(each.interface) is None
    )
    mtu, largest_mtu = min(each.mtu for each in interfaces), max(each.mtu for each in interfaces)
    return DesiredNetwork(
        vni=vni,
        mtu=mtu,
        gateways=tuple(sorted({gateway for interface in interfaces for gateway in _gateways(interface.addresses)})),
        # A pod keeps what its network had when it was assigned, so one that had it is enough.
        snat=any(interface.ip_fabric_snat for interface in interfaces),
        forwarding=any(interface.ip_fabric_forwarding for interface in interfaces),
        ports=tuple(sorted(ports, key=lambda port: port.link)),
        routed=any(interface.forwarding_mode is ForwardingMode.L3 for interface in interfaces),
        largest_mtu=largest_mtu if largest_mtu > mtu else None,
    )


def _names(networks: Mapping[int, list[_Attached]], index_0: Iterable[_Attached]) -> dict[int, dict[str, FqName]]:
    """Returns the name of each network by VNI and uuid: one network keeps its uuid, whatever its name.

    Of index 0 only networks that are isolated by their VNI.
    """
    names = {vni: {each.interface.network_uuid: each.interface.network for each in networks[vni]} for vni in networks}
    for each in index_0:
        if vni := isolated_network(each.interface):
            names.setdefault(vni, {})[each.interface.network_uuid] = each.interface.network
    return names


def _gateways(addresses: Iterable[InterfaceAddress]) -> Iterator[str]:
    # Not `gateway`: a pod may request another pod's address as its gateway, which the node must not answer for.
    for address in addresses:
        if address.subnet_gateway is not None:
            yield f"{address.subnet_gateway}/{address.prefix_length}"


def _port(interface: VirtualMachineInterface, link: str) -> DesiredPort:
    return DesiredPort(link, interface.mac, tuple(address.address for address in interface.addresses), interface.mtu)


def _routed_port(interface: VirtualMachineInterface, link: str) -> RoutedPort:
    # Not `gateway`, as above: an address of the host end would be taken from the pod that has it.
    gateways = (each.subnet_gateway for each in interface.addresses if each.subnet_gateway)
    addresses = tuple(address.address for address in interface.addresses)
    network = isolated_network(interface)
    return RoutedPort(link, interface.mac, addresses, interface.mtu, tuple(dict.fromkeys(gateways)), network)
