"""Slice table: derives network slices from virtual machines and virtual routers. Pure.

Nobody writes slices to a Contrail API server: an agent sees the virtual machines of all nodes there, and the virtual
router of a node has the address under which it is reached. No block of addresses belongs to a node, so an l3 network
lists single addresses.

The methods that change something return the keys of slices that may differ from now on. As with other stores, the
slices of an l3 network list endpoints as long as a pod has an interface that was assigned as l2_l3.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from contrail_config.objects import Endpoint, ForwardingMode, NetworkSlice, VirtualMachine, VirtualMachineInterface


class SliceKey(NamedTuple):
    """Identifies a slice."""

    network_uuid: str
    node: str


class SliceTable:
    """All slices of networks in which virtual machines have interfaces."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, dict[str, VirtualMachineInterface]]] = defaultdict(dict)  # by network
        self._bridged = Counter[str]()  # interfaces that were assigned as l2_l3, by network
        self._tunnels: dict[str, tuple[str, ...]] = {}  # by name of the virtual router

    def keys(self, networks: Collection[str]) -> set[SliceKey]:
        """Returns the keys of all slices of these networks."""
        return {SliceKey(uuid, node) for uuid in networks for node in self._nodes.get(uuid, ())}

    def machine_changed(self, before: VirtualMachine | None, after: VirtualMachine | None) -> set[SliceKey]:
        """Replaces a virtual machine; None is one that does not exist."""
        changed = set[SliceKey]()
        bridged = {uuid: self._is_bridged(uuid) for uuid in _networks_of(before, after)}
        if before is not None:
            changed.update(self._remove(each, before.node) for each in before.interfaces)
        if after is not None:
            changed.update(self._add(each, after.node) for each in after.interfaces)
        return changed | self.keys([uuid for uuid, was in bridged.items() if was != self._is_bridged(uuid)])

    def router_changed(self, name: str, addresses: tuple[str, ...] | None) -> set[SliceKey]:
        """Sets the addresses of a virtual router; None if there is none of this name."""
        if addresses is None:
            self._tunnels.pop(name, None)
        else:
            self._tunnels[name] = addresses
        nodes = {node for nodes in self._nodes.values() for node in nodes if node.lower() == name.lower()}
        return {SliceKey(uuid, node) for uuid, of_network in self._nodes.items() for node in nodes & of_network.keys()}

    def slice(self, key: SliceKey) -> NetworkSlice | None:
        """Returns the slice; None if the node has no interface in the network, or none with a number."""
        interfaces = self._nodes.get(key.network_uuid, {}).get(key.node, {}).values()
        numbered = [each for each in interfaces if each.vni]
        if not numbered:
            return None
        routed = [each for each in numbered if each.forwarding_mode is ForwardingMode.L3]
        linked = numbered if self._is_bridged(key.network_uuid) else []
        return NetworkSlice(
            key.network_uuid,
            key.node,
            numbered[0].network,
            max(each.vni for each in numbered),
            ForwardingMode.L3 if routed else ForwardingMode.L2_L3,
            self._tunnel(key.node),
            endpoints=tuple(sorted(_endpoint(each).text for each in linked)),
            borrowed=tuple(sorted(address.address for each in routed for address in each.addresses)),
        )

    def _add(self, interface: VirtualMachineInterface, node: str) -> SliceKey:
        self._nodes[interface.network_uuid].setdefault(node, {})[interface.uuid] = interface
        self._bridged[interface.network_uuid] += _is_bridged(interface)
        return SliceKey(interface.network_uuid, node)

    def _remove(self, interface: VirtualMachineInterface, node: str) -> SliceKey:
        nodes = self._nodes[interface.network_uuid]
        del nodes[node][interface.uuid]
        self._bridged[interface.network_uuid] -= _is_bridged(interface)
        if not nodes[node]:
            del nodes[node]
        if not nodes:
            del self._nodes[interface.network_uuid]
            del self._bridged[interface.network_uuid]
        return SliceKey(interface.network_uuid, node)

    def _is_bridged(self, network_uuid: str) -> bool:
        return self._bridged[network_uuid] > 0

    def _tunnel(self, node: str) -> tuple[str, ...]:
        """Returns the addresses of the virtual router that has the node's name, if need be in another case."""
        if node in self._tunnels:
            return self._tunnels[node]
        alike = [addresses for name, addresses in self._tunnels.items() if name.lower() == node.lower()]
        return alike[0] if len(alike) == 1 else ()


def _networks_of(*machines: VirtualMachine | None) -> Iterable[str]:
    return {each.network_uuid for machine in machines if machine is not None for each in machine.interfaces}


def _is_bridged(interface: VirtualMachineInterface) -> bool:
    return interface.forwarding_mode is ForwardingMode.L2_L3


def _endpoint(interface: VirtualMachineInterface) -> Endpoint:
    return Endpoint(interface.mac, tuple(address.address for address in interface.addresses))
