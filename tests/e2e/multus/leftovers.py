"""Leftovers of attachments: of one container, and of all on a node."""

from collections import Counter

from tests.e2e.multus.node import Node
from tests.e2e.multus.runtime import Sandbox

_KEPT_BY_HOST_LOCAL = ("lock", "last_reserved_ip.0", "last_reserved_ip.1")


def of_sandbox(sandbox: Sandbox) -> list[str]:
    """Links, files and ports of the container on its node."""
    return [*of_this_plugin(sandbox), *_files_of(sandbox, "/var/lib/cni")]


def of_this_plugin(sandbox: Sandbox) -> list[str]:
    """`of_sandbox` without the files of Multus and other plugins."""
    return [*links_of(sandbox), *_files_of(sandbox, "/run/contrail"), *map(str, sandbox.ports)]


def links_of(sandbox: Sandbox) -> list[str]:
    """Host ends of this plugin's links, found by the container in their alias."""
    links = sandbox.node.host.run("ip", "-o", "link").splitlines()
    return [line for line in links if f"contrail {sandbox.container[:12]} " in line]


def _files_of(sandbox: Sandbox, folder: str) -> list[str]:
    files = sandbox.node.state(folder)
    return [str(file) for file, text in files.items() if sandbox.container in str(file) or sandbox.container in text]


def of_node(node: Node) -> Counter[str]:
    """Links and files of all attachments, without files that Debian's plugins never delete."""
    files = [*node.state("/run/contrail"), *node.state("/var/lib/cni"), *node.ports()]
    paths = (str(file) for file in files if file.name not in _KEPT_BY_HOST_LOCAL)
    return Counter([*node.host.net.links(), *paths])
