"""Slice table: derives each network slice from virtual machines, blocks, networks and nodes. Pure.

Slices have no information of their own: a deleted one loses nothing, and a manager that starts derives all of them
again. The methods that change something return the keys of slices that may differ from now on; in a network that is
routed by block, a pod whose addresses are in blocks of its node changes none.

A network that changes its forwarding mode has interfaces of both modes until the last pod of before has gone. Pods of
l2_l3 expect all others on the link, so as long as there is one, the slices of an l3 network list endpoints beside
blocks.

An interface is kept as one string, since there may be hundreds of thousands.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from contrail_config.addressing.notation import format_address
from contrail_config.kubernetes.blocks import SIZE, BlockKey
from contrail_config.kubernetes.kinds import label_value
from contrail_config.objects import (
    Endpoint,
    ForwardingMode,
    FqName,
    NetworkSlice,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
)

_BLOCK_BITS: Final = SIZE.bit_length() - 1
_BITS: Final = {4: 32, 6: 128}
_ROUTED: Final = "/"

FindNetwork = Callable[[str], VirtualNetwork | None]
"""Returns the network of a uuid, None if it is not known."""

FindHome = Callable[[str, str], str | None]
"""Returns the node to which the block of an address belongs, if to any: by network uuid and address."""

FindNodeAddress = Callable[[BlockKey], str | None]
"""Returns the address in a block that is for the node to which it belongs, None if there is none."""


class SliceKey(NamedTuple):
    """Identifies a slice."""

    network_uuid: str
    node: str


class _Description(NamedTuple):
    """What each slice of a network says of it."""

    name: FqName
    vni: int
    mode: ForwardingMode


class _Network:
    """A network in which interfaces are, as it was known last, its interfaces by node, and how many are l2_l3."""

    __slots__ = ("bridged", "description", "nodes")

    def __init__(self, description: _Description) -> None:
        self.description = description
        self.nodes: dict[str, dict[str, str]] = {}  # node to interface uuid to its text (`_text`)
        self.bridged = 0


class SliceTable:
    """All slices. What finds something answers from caches."""

    def __init__(self, find_network: FindNetwork, find_home: FindHome, find_node_address: FindNodeAddress) -> None:
        self._find_node_address = find_node_address
        self._find_network = find_network
        self._find_home = find_home
        self._networks: dict[str, _Network] = {}
        self._keys: dict[str, SliceKey] = {}  # by interface uuid
        self._blocks = defaultdict[SliceKey, set[BlockKey]](set)
        self._homes: dict[BlockKey, str] = {}
        self._tunnels: dict[str, tuple[str, ...]] = {}  # by node
        self._nodes: dict[str, str] = {}  # by label
        self._digests: dict[str, int] = {}  # of what slices say of networks and derive from them, by network uuid

    def keys(self) -> set[SliceKey]:
        """Returns the keys of all slices that may have to exist."""
        used = {SliceKey(uuid, node) for uuid, network in list(self._networks.items()) for node in list(network.nodes)}
        return used.union(self._blocks)

    def node_of_label(self, label: str) -> str | None:
        """Returns the known node of this label value."""
        return self._nodes.get(label)

    def put(self, virtual_machine: VirtualMachine) -> set[SliceKey]:
        """Adds the interfaces of a virtual machine, or replaces them."""
        changed = set[SliceKey]()
        for interface in virtual_machine.interfaces:
            key = SliceKey(interface.network_uuid, virtual_machine.node)
            text = _text(interface)
            before = self._keys.get(interface.uuid)
            if before is not None and before != key:
                changed |= self._remove(interface.uuid)
            endpoints = self._endpoints(key, interface)
            if endpoints.get(interface.uuid) != text:
                known = endpoints.get(interface.uuid)
                endpoints[interface.uuid] = text
                self._keys[interface.uuid] = key
                changed |= self._affected(key, known, text)
        return changed

    def remove(self, interfaces: Iterable[str]) -> set[SliceKey]:
        """Removes interfaces, by uuid. Idempotent."""
        return {key for uuid in interfaces for key in self._remove(uuid)}

    def set_block(self, block: BlockKey, node: str | None) -> set[SliceKey]:
        """Sets the node to which a block belongs; None if it belongs to none, or was deleted."""
        before = self._homes.get(block)
        if before == node:
            return set()
        changed = set[SliceKey]()
        if before is not None:
            key = SliceKey(block.pool.network_uuid, before)
            self._blocks[key].discard(block)
            if not self._blocks[key]:
                del self._blocks[key]
            del self._homes[block]
            changed.add(key)
        if node is not None:
            key = SliceKey(block.pool.network_uuid, node)
            self._blocks[key].add(block)
            self._homes[block] = node
            changed.add(key)
        return changed

    def has_node(self, node: str) -> bool:
        """Returns whether there is such a node."""
        return node in self._tunnels

    def set_tunnel(self, node: str, addresses: tuple[str, ...] | None) -> set[SliceKey]:
        """Sets the tunnel addresses of a node; None if there is no such node."""
        if self._tunnels.get(node) == addresses:
            return set()
        if addresses is None:
            del self._tunnels[node]  # the label stays: it is needed to delete the slices
        else:
            self._tunnels[node] = addresses
            self._nodes[label_value(node)] = node
        changed = {SliceKey(uuid, node) for uuid, network in self._networks.items() if node in network.nodes}
        return changed.union(key for key in self._blocks if key.node == node)

    def spread(self, network_uuid: str) -> tuple[FqName, int] | None:
        """Returns the name of a network and the number of nodes on which it has interfaces; None if it has none."""
        network = self._networks.get(network_uuid)
        return None if network is None else (network.description.name, len(network.nodes))

    def network_changed(self, network_uuid: str) -> set[SliceKey]:
        """Takes notice of a change of a network: most, such as of its MTU, affect no slice. Idempotent."""
        found = self._find_network(network_uuid)
        digest = None if found is None else hash((_description(found), found.subnets))  # subnets: addresses of nodes
        if self._digests.get(network_uuid) == digest:
            return set()
        if digest is None:
            del self._digests[network_uuid]
        else:
            self._digests[network_uuid] = digest
        return self.of_network(network_uuid)

    def of_network(self, network_uuid: str) -> set[SliceKey]:
        """Returns the keys of the slices of a network."""
        network = self._networks.get(network_uuid)
        nodes = set[str]() if network is None else set(network.nodes)
        return {SliceKey(network_uuid, node) for node in nodes}.union(
            key for key in self._blocks if key.network_uuid == network_uuid
        )

    def slice(self, key: SliceKey) -> NetworkSlice | None:
        """Returns the slice; None if there should be none: it has nothing to say, or its node is not known."""
        tunnel, described = self._tunnels.get(key.node), self._describe(key.network_uuid)
        if tunnel is None or described is None or not described.vni:
            return None
        known = self._networks.get(key.network_uuid)
        texts = known.nodes.get(key.node, {}).values() if known is not None else ()
        made = NetworkSlice(key.network_uuid, key.node, *described, tunnel)
        if described.mode is ForwardingMode.L2_L3:
            return _with_endpoints(made, texts)
        routed = self._routed(made, key, texts)
        return _with_endpoints(routed, texts) if known is not None and known.bridged else _unless_empty(routed)

    def _describe(self, network_uuid: str) -> _Description | None:
        """Returns what is known of a network: now, or before somebody deleted it while it has interfaces."""
        found, known = self._find_network(network_uuid), self._networks.get(network_uuid)
        if found is None:
            return None if known is None else known.description
        description = _description(found)
        if known is not None:
            known.description = description
        return description

    def _routed(self, empty: NetworkSlice, key: SliceKey, texts: Iterable[str]) -> NetworkSlice:
        own = sorted(self._blocks.get(key, ()))
        blocks = tuple(_cidr(block) for block in own)
        borrowed = tuple(sorted(address for text in texts for address in self._borrowed(key, text)))
        node_addresses = self._node_addresses(own)
        return NetworkSlice(*_identity(empty), blocks=blocks, borrowed=borrowed, node_addresses=node_addresses)

    def _node_addresses(self, blocks: Iterable[BlockKey]) -> tuple[str, ...]:
        """Returns the first address of the node in each family."""
        found = dict[int, str]()
        for block in blocks:
            if block.pool.family not in found and (address := self._find_node_address(block)) is not None:
                found[block.pool.family] = address
        return tuple(found.values())

    def _borrowed(self, key: SliceKey, text: str) -> Iterator[str]:
        """Yields those addresses of an interface whose blocks do not belong to its node."""
        for address in text.lstrip(_ROUTED).split(" ")[1:]:
            if self._find_home(key.network_uuid, address) != key.node:
                yield address

    def _affected(self, key: SliceKey, before: str | None, after: str | None) -> set[SliceKey]:
        """Counts a changed interface, None where there is none, and returns the slices that depend on it."""
        network = self._networks[key.network_uuid]
        had_bridged = network.bridged > 0
        network.bridged += _is_bridged(after) - _is_bridged(before)
        described = self._describe(key.network_uuid)
        if described is None or described.mode is ForwardingMode.L2_L3:
            return {key}
        if had_bridged != (network.bridged > 0):
            return {key} | self.of_network(key.network_uuid)
        has_borrowed = any(any(self._borrowed(key, text)) for text in (before, after) if text is not None)
        return {key} if had_bridged or has_borrowed else set()

    def _endpoints(self, key: SliceKey, interface: VirtualMachineInterface) -> dict[str, str]:
        network = self._networks.get(key.network_uuid)
        if network is None:
            assigned = _Description(interface.network, interface.vni, ForwardingMode.L2_L3)
            network = self._networks[key.network_uuid] = _Network(assigned)
        return network.nodes.setdefault(key.node, {})

    def _remove(self, interface: str) -> set[SliceKey]:
        key = self._keys.pop(interface, None)
        if key is None:
            return set()
        network = self._networks[key.network_uuid]
        text = network.nodes[key.node].pop(interface)
        changed = self._affected(key, text, None)
        if not network.nodes[key.node]:
            del network.nodes[key.node]
        if not network.nodes:
            del self._networks[key.network_uuid]
        return changed


def _description(network: VirtualNetwork) -> _Description:
    return _Description(network.fq_name, network.vni, network.forwarding_mode)


def _identity(made: NetworkSlice) -> tuple[str, str, FqName, int, ForwardingMode, tuple[str, ...]]:
    return made.network_uuid, made.node, made.network, made.vni, made.forwarding_mode, made.tunnel


def _text(interface: VirtualMachineInterface) -> str:
    """Returns MAC and addresses of an interface, marked if its pod sends everything to gateways."""
    mark = _ROUTED if interface.forwarding_mode is ForwardingMode.L3 else ""
    return mark + Endpoint(interface.mac, tuple(address.address for address in interface.addresses)).text


def _is_bridged(text: str | None) -> bool:
    return text is not None and not text.startswith(_ROUTED)


def _with_endpoints(made: NetworkSlice, texts: Iterable[str]) -> NetworkSlice | None:
    endpoints = tuple(sorted(text.lstrip(_ROUTED) for text in texts))
    return _unless_empty(msgspec.structs.replace(made, endpoints=endpoints))


def _unless_empty(made: NetworkSlice) -> NetworkSlice | None:
    return made if made.endpoints or made.blocks or made.borrowed else None


def _cidr(block: BlockKey) -> str:
    family = block.pool.family
    return f"{format_address(block.first, family=family)}/{_BITS[family] - _BLOCK_BITS}"
