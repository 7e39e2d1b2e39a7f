"""Attaching ports to networks, as ADD does it: the network is there before the port, and the port is connected last.

Usually the reconciler has made the network already, since its virtual machine was known before ADD. An ADD that comes
first makes it itself. It knows one interface of the network only, so it adds what is missing and removes nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence

from cni_contrail.datapath import bridge, filter_rules
from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath.desired import LocalPort, Network
from cni_contrail.datapath.entries import sources_of
from cni_contrail.datapath.missing_modules import explained, open_filters
from cni_contrail.datapath.namespaces import Namespaces, name_of
from cni_contrail.datapath.network_lock import acquire, locked_network
from cni_contrail.datapath.network_reconciler import reconcile_network
from cni_contrail.datapath.reserved_macs import mac_problem
from cni_contrail.link.bridge_port import BRIDGE, BRIDGE_INDEXES
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkRef
from cni_contrail.link.lookup import index_of
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.netns import InNetns

_ENOENT = 2


@contextlib.contextmanager
def held_networks(
    networks: Sequence[Network], namespaces: Namespaces, *, sysctl_dir: str = "/proc/sys"
) -> Iterator[dict[str, int]]:
    """Yields descriptors of the networks' namespaces by name, each with bridge and filter, and keeps them from removal.

    Ports of the networks need not exist. Raises LinkError.
    """
    with contextlib.ExitStack() as stack:
        held: dict[str, int] = {}
        for network in networks:
            netns = _held_network(network, namespaces, sysctl_dir)
            stack.callback(os.close, netns)
            held[name_of(network.vni)] = netns
        yield held


def connect_ports(netns: int, ports: Sequence[LocalPort]) -> None:
    """Lets frames pass from and to ports that exist in the network's namespace. Idempotent.

    Raises LinkError, also for a port with a reserved MAC: none of the ports is connected then.
    """
    for port in ports:
        if problem := mac_problem(port.mac):
            raise LinkError(f"port {port.link}: {problem}")
    with InNetns(netns):
        kernel, filters = RouteSocket(), open_filters()
    with kernel, filters:
        links = [(_find(kernel, port.link), port) for port in ports]
        bridge_link = _find(kernel, BRIDGE)
        elements = [filter_rules.element(source, link.ifindex) for link, port in links for source in sources_of(port)]
        filters.commit(list(filter_rules.change_elements(elements, [])))
        kernel.execute_all([request for link, port in links for request in _entries(bridge_link, link, port)])


def _held_network(network: Network, namespaces: Namespaces, sysctl_dir: str) -> int:
    netns = acquire(namespaces, network.vni, fcntl.LOCK_SH)
    if _is_prepared(netns):
        return netns
    os.close(netns)
    with locked_network(namespaces, network.vni) as alone:
        try:
            reconcile_network(alone, network._replace(ports=()), sysctl_dir=sysctl_dir, removes=False)
        except KernelError as error:
            raise explained(error) from error
    return acquire(namespaces, network.vni, fcntl.LOCK_SH)


def _is_prepared(netns: int) -> bool:
    with InNetns(netns):
        kernel, filters = RouteSocket(), open_filters()
    with kernel, filters:
        if index_of(kernel, BRIDGE) not in BRIDGE_INDEXES:
            return False
        (answer,) = filters.get([nft.get_table(filter_rules.TABLE)])
    if isinstance(answer, KernelError) and answer.errno != _ENOENT:
        raise explained(answer)
    return not isinstance(answer, KernelError)


def _entries(bridge_link: LinkRef, link: LinkRef, port: LocalPort) -> Iterator[NetlinkRequest]:
    yield bridge.set_forwarding(port.mac, link)
    for address in port.addresses:
        yield bridge.set_neighbour(bridge_link, address, port.mac)


def _find(kernel: RouteSocket, link: str) -> LinkRef:
    index = index_of(kernel, link)
    if index is None:
        raise LinkError(f"link {link}: removed by another process while a port was connected")
    return LinkRef(link, index)
