"""Links of nested mode: created by ADD, removed by DEL and GC, with the locks and records that shared VLAN links need.

Each VLAN has a lock, a directory `<state-dir>/.vlan-<name>` that exists while it is held. It is taken before the phase
`remove`, never inside: whoever has one of the phase's places must not wait for anything but the kernel.

Whether a VLAN link is in use is up to the kernel (`link.vlan_links`). Macvlans of a sandbox that is gone may still use
it: the kernel deletes the links of a namespace some time after its end. So a DEL waits a moment if a link is in use and
no record of this node says by whom. If it stays in use, the next DEL in that VLAN, GC or the daemon's maintenance
deletes it later.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence

from cni_contrail.commands.node import NodeServices
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, DamagedRecordError, PluginError, TryAgainError
from cni_contrail.interfaces.names import vlan_link_name
from cni_contrail.link.errors import LinkError, NetnsError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.macvlans import (
    any_macvlan_exists,
    delete_macvlans,
    delete_macvlans_by_alias,
    make_macvlans,
    release_vlans,
)
from cni_contrail.link.netns import own_netns_identity
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.vlan_links import our_vlan_links, release_vlan_links
from cni_contrail.sandbox import Sandbox
from cni_contrail.state.lock import LockedDirectory
from cni_contrail.state.records import Record

_LOCK_TIMEOUT = 30.0  # seconds; each call holds it for milliseconds, but hundreds may come at once
_END_OF_SANDBOX = 2.0  # seconds until the kernel has deleted the links of a namespace that is gone
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1


def make_links(node: NodeServices, netns: int, record: Record) -> None:
    """Creates the macvlans of the record, or none, and the VLAN links that are missing; raises LinkError."""
    with node.phase("make"):
        make_macvlans(
            netns,
            record.sandbox_id,
            _plans(record),
            lambda plans: _locked(node, plans, _LOCK_TIMEOUT),
            sysctl_dir=node.settings.sysctl_dir,
        )


def remove_links(node: NodeServices, record: Record) -> None:
    """Removes the macvlans of the record, and the VLAN links that nothing else uses then.

    Raises `PluginError` with code 104, or 11 if another call holds the lock of a VLAN.
    """
    try:
        if record.sandbox_id >= 0:
            with node.phase("remove"):
                delete_macvlans(record.sandbox_id, _plans(record))
        _release(node, record)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def has_links(record: Record) -> bool:
    """Returns whether a macvlan of the record exists; raises LinkError."""
    return record.sandbox_id >= 0 and any_macvlan_exists(record.sandbox_id, _plans(record))


def release_unused_vlans(node: NodeServices) -> None:
    """Deletes all VLAN links of this plugin that nothing uses, unless their lock is held; raises `PluginError`."""
    try:
        with RouteSocket() as host:
            names = {vlan_link_name(parent, vlan.vlan_id) for vlan, parent in our_vlan_links(host)}
            for name in sorted(names):
                with contextlib.suppress(TryAgainError), _locked_name(node, name, 0):
                    # Read again under the lock: an ADD may have changed them.
                    release_vlan_links(
                        host,
                        [vlan for vlan, parent in our_vlan_links(host) if vlan_link_name(parent, vlan.vlan_id) == name],
                    )
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def remove_unrecorded(
    node: NodeServices, sandbox: Sandbox, prefix: str, only: str, *, kept: Collection[str]
) -> list[str]:
    """Removes macvlans of the sandbox whose alias has the prefix, except those `kept`; returns their names.

    `only` is the name of the one to remove, or empty. Without a sandbox there are none. Raises `PluginError` (104).
    """
    if not sandbox.path:
        return []
    try:
        netns = sandbox.open()
    except NetnsError:
        return []
    try:
        removed = delete_macvlans_by_alias(netns, prefix, only, kept=kept)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error
    finally:
        os.close(netns)
    if removed:
        release_unused_vlans(node)
    return removed


def _release(node: NodeServices, record: Record) -> None:
    plans = _plans(record)
    in_use: list[str] = []
    for _ in Deadline(_END_OF_SANDBOX).attempts(_FIRST_PAUSE, _LONGEST_PAUSE):
        with _locked(node, plans, _LOCK_TIMEOUT), node.phase("remove"):
            in_use = release_vlans(plans)
            # Under the lock: a DEL that has yet to release the link still has its record.
            if not in_use or _others_use(node, record, set(in_use)):
                return
    node.log.warning(f"VLAN link {', '.join(in_use)}: kept, something else than a recorded attachment uses it")


def _others_use(node: NodeServices, own: Record, names: set[str]) -> bool:
    """Returns whether other attachments of this node use all these VLAN links; a damaged record may be of any.

    Reads no more records than needed, usually one: the caller holds the locks of the VLANs.
    """
    here = own_netns_identity()
    unexplained = set(names)
    for container in node.attachments.containers():
        for ifname in node.attachments.ifnames(container):
            try:
                record = node.attachments.read(container, ifname)
            except DamagedRecordError:
                return True
            if record is not None and record.host_netns == here and record.attempt != own.attempt:
                unexplained -= {plan.host_name for plan in _plans(record)}
            if not unexplained:
                return True
    return False


@contextlib.contextmanager
def _locked(node: NodeServices, plans: Sequence[InterfacePlan], timeout: float) -> Iterator[None]:
    with contextlib.ExitStack() as locks:
        # In one order everywhere, so that no two calls wait for each other.
        for name in sorted({plan.host_name for plan in plans}):
            locks.enter_context(_locked_name(node, name, timeout))
        yield


def _locked_name(node: NodeServices, name: str, timeout: float) -> LockedDirectory:
    return LockedDirectory(f"{node.settings.state_dir}/.vlan-{name}", timeout)


def _plans(record: Record) -> list[InterfacePlan]:
    return [each.plan for each in record.interfaces]
