"""Networks of the cluster, defined by users."""

from typing import Any

import yaml

from tests.e2e.multus.cluster import DEPLOY, NAMESPACE, Cluster
from tests.e2e.multus.node import FOREIGN_BRIDGE, FOREIGN_DEFAULT, UPLINK
from tests.e2e.node import NETWORK

OTHER_NAMESPACE = "other"

FOREIGN = (FOREIGN_DEFAULT, "demo/bridge", "demo/macvlan", "kube-system/extra-1", "kube-system/extra-2")
"""Names, as in a network status, of networks of other plugins."""

_OURS = {"type": NETWORK, "capabilities": {"ips": True, "mac": True}}
_VERSION = {"cniVersion": "1.0.0"}


def add_networks(cluster: Cluster) -> None:
    """Creates the NADs of this plugin and of others."""
    for namespace in (NAMESPACE, OTHER_NAMESPACE, "kube-system"):
        if cluster.find(f"/api/v1/namespaces/{namespace}") is None:
            cluster.add_namespace(namespace)
    for manifest in yaml.safe_load_all((DEPLOY / "multus" / "networks.yaml").read_text()):
        if manifest["kind"] != "Namespace":
            cluster.apply_nad(manifest)  # demo/blue, demo/green and demo/bridge
    cluster.add_nad("other/blue", {**_VERSION, **_OURS}, cidr="10.11.0.0/16")
    cluster.add_nad("demo/six", {**_VERSION, **_OURS}, cidr="fd00:13::/64")
    chain = [_OURS, {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}}]
    cluster.add_nad("demo/chain", {**_VERSION, "name": "chain", "plugins": chain}, cidr="10.14.0.0/16")
    cluster.add_nad("demo/macvlan", _foreign("macvlan", "10.91.0.0/16", master=UPLINK, mode="bridge"))
    cluster.add_nad("demo/bare", {**_VERSION, "type": NETWORK}, cidr="10.16.0.0/16")
    cluster.add_nad("kube-system/yellow", {**_VERSION, **_OURS}, cidr="10.15.0.0/16")
    cluster.add_nad("kube-system/extra-1", _foreign("bridge", "10.93.0.0/16", bridge=FOREIGN_BRIDGE))
    cluster.add_nad("kube-system/extra-2", _foreign("macvlan", "10.94.0.0/16", master=UPLINK, mode="bridge"))
    cluster.add_nad("demo/broken", {**_VERSION, "type": "broken"})


def _foreign(plugin: str, subnet: str, **settings: str) -> dict[str, Any]:
    return {**_VERSION, "type": plugin, **settings, "ipam": {"type": "host-local", "subnet": subnet}}
