"""Watches the kernel for changes in the namespaces of networks and in the node's own one.

Namespaces are told apart by the IDs that the node's namespace has for them. A namespace is watched from `attached` on,
so a change after it is notified, and one before it is seen by the audit that follows. Not thread-safe.

A change of rules that an audit has seen already, or made itself, is left out: the generation of the rules tells.
"""

from __future__ import annotations

import os
import select

from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.drift.kernel_change import (
    FILTER_GROUPS,
    FILTER_MESSAGES,
    LINK_GROUPS,
    LINK_MESSAGES,
    NODE_GROUPS,
    NODE_MESSAGES,
    FilterChanged,
    KernelChange,
    NamespaceGone,
    parse_change,
)
from cni_contrail.drift.notification_socket import NotificationSocket
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns_ids import assign_netns_id, own_netns_id

NODE = 0
"""Number of the node's own namespace; no network has it."""

_RECEIVE_BYTES = 8 << 20
_SOURCES = (
    (RouteSocket.PROTOCOL, LINK_GROUPS, LINK_MESSAGES, True),
    (RouteSocket.PROTOCOL, NODE_GROUPS, NODE_MESSAGES, False),
    (NftablesSocket.PROTOCOL, FILTER_GROUPS, FILTER_MESSAGES, True),
)
"""Protocol, groups and messages of each socket, and whether it is one for all namespaces."""


class Changes(NamedTuple):
    """Changes by number of the network; `is_incomplete` if there may have been others anywhere."""

    by_network: dict[int, list[KernelChange]]
    is_incomplete: bool


class DriftWatch:
    """Watches from the network namespace that the calling thread is in, the node's. Close it. Raises KernelError.

    `receive_bytes` is the size of each of its buffers.
    """

    def __init__(self, *, receive_bytes: int = _RECEIVE_BYTES) -> None:
        self._own = {None, own_netns_id()}  # IDs of the node's namespace; it may know itself
        self._networks: dict[int | None, int] = {}  # by ID of the namespace
        self._inodes: dict[int, int] = {}  # of the namespaces, by number of the network
        self._generations: dict[int, int] = {}  # of the rules that an audit has seen, by number of the network
        self._poll = select.poll()
        self._sockets: list[NotificationSocket] = []
        try:
            for protocol, groups, messages, all_namespaces in _SOURCES:
                opened = NotificationSocket(
                    protocol, groups, messages, all_namespaces=all_namespaces, receive_bytes=receive_bytes
                )
                self._sockets.append(opened)
                self._poll.register(opened, select.POLLIN)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the watch."""
        for each in self._sockets:
            each.close()

    def interrupt_by(self, descriptor: int) -> None:
        """Ends each `wait` when the descriptor is readable."""
        self._poll.register(descriptor, select.POLLIN)

    def wait(self, timeout: float | None) -> bool:
        """Waits for a notification, up to `timeout` seconds; returns whether there is one, or an interruption."""
        return bool(self._poll.poll(None if timeout is None else timeout * 1000))

    def attached(self, vni: int, netns: int) -> None:
        """Watches the namespace of a network, before it is audited; raises KernelError. Idempotent."""
        inode = os.fstat(netns).st_ino
        if self._inodes.get(vni) == inode:
            return
        self._forget(vni)
        self._networks[assign_netns_id(netns)] = vni
        self._inodes[vni] = inode

    def audited(self, vni: int, generation: int) -> None:
        """Leaves out changes of rules up to this generation, which an audit has seen."""
        self._generations[vni] = generation

    def read(self) -> Changes:
        """Returns the changes since the last call; raises KernelError."""
        received = [each.read() for each in self._sockets]
        found: dict[int, list[KernelChange]] = {}
        for notification in (each for part in received for each in part.notifications):
            vni = self._network_of(notification.netns_id)
            change = None if vni is None else parse_change(notification.message)
            if isinstance(change, NamespaceGone):
                vni = self._ended(change.netns_id)
            if change is not None and vni is not None and not self._is_known(vni, change):
                found.setdefault(vni, []).append(change)
        is_incomplete = any(each.is_incomplete for each in received)
        if is_incomplete:  # the end of a namespace may have been among what is lost
            self._networks.clear()
            self._inodes.clear()
        return Changes(found, is_incomplete=is_incomplete)

    def _network_of(self, netns_id: int | None) -> int | None:
        return NODE if netns_id in self._own else self._networks.get(netns_id)

    def _ended(self, netns_id: int) -> int | None:
        """Forgets a namespace that was deleted; returns the number of its network."""
        vni = self._networks.get(netns_id)
        if vni is not None:
            self._forget(vni)
        return vni

    def _is_known(self, vni: int, change: KernelChange) -> bool:
        return isinstance(change, FilterChanged) and change.generation <= self._generations.get(vni, 0)

    def _forget(self, vni: int) -> None:
        """Forgets the namespace of a network: another one may get its ID and its inode."""
        self._inodes.pop(vni, None)
        self._generations.pop(vni, None)
        self._networks = {netns_id: each for netns_id, each in self._networks.items() if each != vni}
