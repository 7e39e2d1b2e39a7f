"""GC: frees every attachment to this network that the runtime does not name as valid.

Freed is all that an attachment's record tells of: links, the record (and with it its claim on an interface), port files
for a stock agent, the agent's ports. Spared are attachments to other networks, an attachment whose ADD is still under
way, or that another call is at, and what was made from another network namespace, whose runtime has a list of its own.

Left too, since nothing tells which network it belongs to: a damaged record (named in the error), one of a version that
did not tell the network, and the files and taps of upstream's plugin. The DEL of their container takes those down.
"""

from __future__ import annotations

from collections.abc import Iterator

from cni_contrail.commands.detach import detach
from cni_contrail.commands.node import Node
from cni_contrail.errors import PluginError, TryAgainError
from cni_contrail.link.netns import own_netns
from cni_contrail.protocol.netconf import NetworkConfig, valid_attachments
from cni_contrail.state.files import file_name


def collect(config: NetworkConfig, node: Node) -> None:
    """Carries out GC; raises `PluginError` with all failures in one message, when it has tried everything."""
    valid = {(file_name(container), ifname) for container, ifname in valid_attachments(config)}
    failures = []
    for container, ifname in _all_attachments(node):
        if (container, ifname) not in valid:
            try:
                _free(node, config.name, container, ifname)
            except PluginError as error:
                failures.append(error)
    node.pending.send_all(node.agent)
    if failures:
        raise PluginError(failures[0].code, "; ".join(error.message for error in failures))


def _all_attachments(node: Node) -> Iterator[tuple[str, str]]:
    for container in node.attachments.containers():
        node.attachments.tidy(container)
        for ifname in node.attachments.ifnames(container):
            yield container, ifname


def _free(node: Node, network: str, container: str, ifname: str) -> None:
    try:
        with node.attachments.lock(container, patience=0):
            record = node.attachments.read(container, ifname)
            if record is None or (record.network, record.host_netns) != (network, own_netns()):
                return
            if node.attachments.is_being_made(record):
                return
            detach(node, record, sandbox=None, notify=node.pending.keep)
    except TryAgainError as error:
        node.log.info(f"{ifname} of container {container} is spared: {error.message}")
    else:
        node.log.info(f"freed {ifname} of container {container}: it is not valid any more")
