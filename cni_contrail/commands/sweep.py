"""Frees attachments whose sandbox is gone, for which no DEL came: a runtime may forget, or die.

Each ADD and DEL looks at a few containers besides its own, the next ones by name; since container IDs are random, all
get their turn. It is given up at the first sign of life: a host end that is there, a sandbox that still exists, an ADD
under way. What an ADD in another network namespace made is none of ours: several nodes in namespaces may share a
`state-dir`, and the links of the others are not to be seen from here.

Not promised: where the number of a sandbox that is gone was given to one that is not ours, its attachment waits for
that one's end, for DEL or for GC.
"""

from __future__ import annotations

from cni_contrail.commands.detach import detach
from cni_contrail.commands.node import Node
from cni_contrail.errors import PluginError
from cni_contrail.link.errors import LinkError
from cni_contrail.link.lookup import any_exists
from cni_contrail.link.netns import is_netns, own_netns
from cni_contrail.link.netns_ids import netns_exists
from cni_contrail.state.files import file_name
from cni_contrail.state.records import Record

_CONTAINERS = 4  # that one call looks at: a quarter of a millisecond


def sweep(node: Node, container: str) -> None:
    """Frees what is gone of the containers behind this one; never fails. The agent is told by who sends next."""
    names = _containers(node)
    following = [name for name in names if name > container] + [name for name in names if name < container]
    for name in following[:_CONTAINERS]:
        _try_container(node, name)


def sweep_all(node: Node) -> int:
    """Frees what is gone of all containers, and returns how many attachments that were; never fails.

    The agent is told by who sends next.
    """
    return sum(_try_container(node, name) for name in _containers(node))


def _containers(node: Node) -> list[str]:
    try:
        return node.attachments.containers()
    except PluginError as error:
        node.log.warning(f"no attachment is looked through: {error.message}")
        return []


def _try_container(node: Node, name: str) -> int:
    try:
        return _sweep_container(node, name)
    except (PluginError, LinkError, OSError) as error:
        node.log.debug(f"attachments of {name} are not looked through: {error}")
        return 0


def _sweep_container(node: Node, container: str) -> int:
    node.attachments.tidy(container)
    if not any(_is_gone(node, record) for record in node.attachments.of_container(container)):
        return 0
    with node.attachments.lock(container, patience=0):
        gone = [record for record in node.attachments.of_container(container) if _is_gone(node, record)]
        for record in gone:
            detach(node, record, sandbox=None, notify=node.pending.keep)
            node.log.warning(f"freed {record.ifname} of container {record.container_id}: its sandbox is gone")
    return len(gone)


def _is_gone(node: Node, record: Record) -> bool:
    return (
        record.host_netns == own_netns()
        and not _has_links(record)
        and not _has_sandbox(node, record)
        and not node.attachments.is_being_made(record)
    )


def _has_links(record: Record) -> bool:
    return any_exists(each.plan.host_name for each in record.interfaces)


def _has_sandbox(node: Node, record: Record) -> bool:
    """Judged by the sandbox's number if it is known: its path may not be seen from here, or be another one's by now."""
    if record.sandbox_id < 0:
        return is_netns(record.netns)
    return netns_exists(record.sandbox_id) and not _is_of_another(node, record)


def _is_of_another(node: Node, record: Record) -> bool:
    """Whether the number was given anew, to a sandbox that a living attachment of another container is in."""
    others = (name for name in node.attachments.containers() if name != file_name(record.container_id))
    return any(
        other.sandbox_id == record.sandbox_id and other.host_netns == record.host_netns and _has_links(other)
        for name in others
        for other in node.attachments.of_container(name)
    )
