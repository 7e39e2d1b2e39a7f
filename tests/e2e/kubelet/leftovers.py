"""Everything that pods could leave behind on a node."""

import os
import re
from collections import Counter
from collections.abc import Iterator

from tests.e2e.host import Host
from tests.e2e.kubelet.node import Node
from tests.e2e.kubelet.pod_cgroups import pod_cgroups

_OF_NODES = re.compile(r"contrail\.\d+")
_OF_NETWORKS = re.compile(r"/run/netns/contrail-\d+")
_RENEWED = re.compile(r"(?<=/\.\.)\d{4}_[\d_.]+")
"""Time in the name of a folder, into which kubelet puts credentials that it renews."""

_MOUNTS = ("/run/", "/var/lib/")
_FOLDERS = ("/run/contrail/cni", "/run/netns", "/var/lib/cni", "/var/lib/contrail/ports", "/var/lib/kubelet/pods")


def of_node(node: Node) -> Counter[str]:
    """Links, mounts, files and control groups.

    Without the tunnel of index 0, which a node has from its first pod on, the namespaces of networks, which it keeps
    for a while after its last pod there, and ended sandboxes, which kubelet keeps for up to a minute.
    """
    mounts = (line.split()[4] for line in node.host.path("/proc/1/mountinfo").read_text().splitlines())
    kinds = {
        "link": (link for link in node.host.net.links() if not _OF_NODES.fullmatch(link)),
        "mount": (mount for mount in mounts if mount.startswith(_MOUNTS) and not _OF_NETWORKS.fullmatch(mount)),
        "file": (file for file in _files(node.host) if not _OF_NETWORKS.search(file)),
        "control group": map(str, pod_cgroups(node.host)),
    }
    return Counter(f"{node.name}: {kind} {each}" for kind, found in kinds.items() for each in found)


def networks_of_node(node: Node) -> list[str]:
    """Names of the namespaces of networks."""
    return sorted(name for name in os.listdir(node.host.path("/run/netns")) if name.startswith("contrail-"))


def _files(host: Host) -> Iterator[str]:
    for top in _FOLDERS:
        for folder, _, names in os.walk(host.path(top)):
            yield from (_RENEWED.sub("data", os.path.join(folder, name)) for name in names)
