"""What an attachment could leave behind: on the node by its container, on the whole node, in the cluster."""

from collections import Counter

from tests.e2e.multus.node import Node
from tests.e2e.multus.runtime import Sandbox

_KEPT_BY_HOST_LOCAL = ("lock", "last_reserved_ip.0", "last_reserved_ip.1")


def of_sandbox(sandbox: Sandbox) -> list[str]:
    """Links, files and ports on the node that are of the container."""
    return [*of_ours(sandbox), *_files_of(sandbox, "/var/lib/cni")]


def of_ours(sandbox: Sandbox) -> list[str]:
    """The same without what Multus and other plugins keep."""
    return [*links_of(sandbox), *_files_of(sandbox, "/run/contrail"), *map(str, sandbox.ports)]


def links_of(sandbox: Sandbox) -> list[str]:
    """Host ends of ours, which bear the container in their alias."""
    links = sandbox.node.host.run("ip", "-o", "link").splitlines()
    return [line for line in links if f"contrail {sandbox.container[:12]} " in line]


def _files_of(sandbox: Sandbox, folder: str) -> list[str]:
    files = sandbox.node.state(folder)
    return [str(file) for file, text in files.items() if sandbox.container in str(file) or sandbox.container in text]


def of_node(node: Node) -> Counter[str]:
    """Links and files of all attachments; what Debian's plugins keep for ever is not counted."""
    files = [*node.state("/run/contrail"), *node.state("/var/lib/cni"), *node.ports()]
    kept = (str(file) for file in files if file.name not in _KEPT_BY_HOST_LOCAL)
    return Counter([*node.host.net.links(), *kept])
