"""Sweep of orphaned attachments: their sandbox is gone, and the runtime never called DEL (a defect or a crash).

Each ADD and DEL looks at a few other containers, the next ones by name; container IDs are random, so all are looked at
in time. In the daemon, calls leave the directory that it maintains to its maintenance, which looks at all containers.

Any sign of life keeps an attachment: an existing host end, an existing sandbox, an ADD that still runs. Attachments
made from another network namespace are kept too: several nodes in namespaces may share a `state-dir`, and their links
are not visible from here.

Not guaranteed: if the kernel reuses the netns ID of a sandbox that is gone for a foreign one, the attachment is kept
until that one ends, or until DEL or GC.
"""

from __future__ import annotations

from cni_contrail.commands.detach import detach
from cni_contrail.commands.node import NodeServices
from cni_contrail.errors import PluginError
from cni_contrail.link.errors import LinkError
from cni_contrail.link.netns import is_netns, own_netns_identity
from cni_contrail.link.netns_ids import netns_exists
from cni_contrail.link.remove import any_exists
from cni_contrail.quoting import cut
from cni_contrail.state.files import file_name
from cni_contrail.state.records import Record

_CONTAINERS_PER_CALL = 4  # a quarter of a millisecond


def sweep(node: NodeServices, container: str) -> None:
    """Detaches orphans of the next containers after this one, and queues the notifications; never fails."""
    if node.context.maintains(node.settings.state_dir):
        return
    names = _containers(node)
    # Names are sorted; the list continues at its start.
    following = [name for name in names if name > container] + [name for name in names if name < container]
    for name in following[:_CONTAINERS_PER_CALL]:
        _try_container(node, name)


def sweep_all(node: NodeServices) -> int:
    """Detaches orphans of all containers and returns their number; queues the notifications; never fails.

    In nested mode also deletes the VLAN links that nothing uses any more.
    """
    detached = sum(_try_container(node, name) for name in _containers(node))
    if node.settings.nested_parent:
        from cni_contrail.commands.nested import release_unused_vlans  # few nodes need it

        try:
            release_unused_vlans(node)
        except PluginError as error:
            node.log.debug(f"VLAN links not swept: {error.message}")
    return detached


def _containers(node: NodeServices) -> list[str]:
    try:
        return node.attachments.containers()
    except PluginError as error:
        node.log.warning(f"sweep skipped: {error.message}")
        return []


def _try_container(node: NodeServices, name: str) -> int:
    try:
        return _sweep_container(node, name)
    except (PluginError, LinkError, OSError) as error:
        node.log.debug(f"container {name}: sweep skipped: {error}")
        return 0


def _sweep_container(node: NodeServices, container: str) -> int:
    node.attachments.remove_leftovers(container)
    if not any(_is_orphaned(node, record) for record in node.attachments.of_container(container)):
        return 0
    with node.attachments.lock(container, timeout=0):
        # Read again: a call may have changed the records before the lock was taken.
        orphaned = [record for record in node.attachments.of_container(container) if _is_orphaned(node, record)]
        for record in orphaned:
            detach(node, record, sandbox=None, notify=node.pending.enqueue)
            node.log.warning(
                f"attachment {record.ifname} of container {cut(record.container_id)}: detached, its sandbox is gone"
            )
    return len(orphaned)


def _is_orphaned(node: NodeServices, record: Record) -> bool:
    return (
        record.host_netns == own_netns_identity()
        and not _has_links(node, record)
        and not _has_sandbox(node, record)
        and not node.attachments.is_in_progress(record)
    )


def _has_links(node: NodeServices, record: Record) -> bool:
    if record.is_nested:
        from cni_contrail.commands.nested import has_links  # few nodes need it

        return has_links(record)
    return any_exists(record.host_links(), netns_dir=node.settings.netns_dir)


def _has_sandbox(node: NodeServices, record: Record) -> bool:
    """Judged by the netns ID if known: the path may be invisible from here, or name another sandbox by now."""
    if record.sandbox_id < 0:
        return is_netns(record.netns)
    return netns_exists(record.sandbox_id) and not _id_is_reused(node, record)


def _id_is_reused(node: NodeServices, record: Record) -> bool:
    """Whether the netns ID now belongs to the sandbox of another container's attachment that has links."""
    others = (name for name in node.attachments.containers() if name != file_name(record.container_id))
    return any(
        other.sandbox_id == record.sandbox_id and other.host_netns == record.host_netns and _has_links(node, other)
        for name in others
        for other in node.attachments.of_container(name)
    )
