"""GC: detaches every attachment of this network that the runtime does not list as valid.

Removed is everything that the attachment's record names: links, the record (and with it its claim on an interface),
port files for a Contrail vrouter agent, and the agent's ports. Kept are attachments of other networks, attachments
whose ADD still runs or whose lock another call holds, and attachments made from another network namespace, whose
runtime has a list of its own.

Kept as well, since their network is unknown: damaged records (named in the error), and the files and taps of the
upstream plugin. DEL of their container removes those.
"""

from __future__ import annotations

from collections.abc import Iterator

from cni_contrail.commands.detach import detach
from cni_contrail.commands.node import NodeServices
from cni_contrail.errors import PluginError, TryAgainError
from cni_contrail.link.netns import own_netns_identity
from cni_contrail.protocol.netconf import NetworkConfig, valid_attachments
from cni_contrail.quoting import listed
from cni_contrail.state.files import file_name


def collect(config: NetworkConfig, node: NodeServices) -> None:
    """Runs GC; tries every attachment, then raises one `PluginError` with all failures."""
    # Containers are compared by directory name: long IDs are hashed there.
    valid = {(file_name(container), ifname) for container, ifname in valid_attachments(config)}
    failures: list[PluginError] = []
    for container, ifname in _all_attachments(node):
        if (container, ifname) not in valid:
            try:
                _collect_attachment(node, config.name, container, ifname)
            except PluginError as error:
                failures.append(error)
    if node.settings.nested_parent:
        failures += _release_vlans(node)
    node.pending.send_all(node.agent)
    if failures:
        raise PluginError(failures[0].code, listed([error.message for error in failures], "; "))


def _release_vlans(node: NodeServices) -> list[PluginError]:
    """Deletes VLAN links that nothing uses any more; returns the failure."""
    from cni_contrail.commands.nested import release_unused_vlans  # few nodes need it

    try:
        release_unused_vlans(node)
    except PluginError as error:
        return [error]
    return []


def _all_attachments(node: NodeServices) -> Iterator[tuple[str, str]]:
    for container in node.attachments.containers():
        node.attachments.remove_leftovers(container)
        for ifname in node.attachments.ifnames(container):
            yield container, ifname


def _collect_attachment(node: NodeServices, network: str, container: str, ifname: str) -> None:
    try:
        # No waiting: a container whose lock is held is in use.
        with node.attachments.lock(container, timeout=0):
            record = node.attachments.read(container, ifname)
            if record is None or (record.network, record.host_netns) != (network, own_netns_identity()):
                return
            if node.attachments.is_in_progress(record):
                return
            detach(node, record, sandbox=None, notify=node.pending.enqueue)
    except TryAgainError as error:
        node.log.info(f"attachment {ifname} of container {container}: kept: {error.message}")
    else:
        node.log.info(f"attachment {ifname} of container {container}: detached, no longer valid")
