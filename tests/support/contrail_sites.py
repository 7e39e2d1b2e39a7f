"""What Contrail's kube-manager wrote on a server, before a manager takes over."""

import json
from typing import NamedTuple

from tests.support.cluster_objects import ClusterObjects
from tests.support.contrail_callers import Caller, Made
from tests.support.upstream_kube_manager import UpstreamKubeManager, UpstreamPod

NODE = "node-1"
ROUTER = "NODE-1"  # found by the name of the node in another case
NETWORKS = json.dumps([{"name": "left"}])
POD_CIDR = "10.32.0.0/24"


class Site(NamedTuple):
    """What Contrail's kube-manager left: networks, and a pod whose uid is that of the cluster's pod."""

    pod_network: Made
    left: Made
    router: Made
    pod: UpstreamPod


async def create_site(caller: Caller, objects: ClusterObjects) -> Site:
    """Has kube-manager write a pod with two interfaces, which the cluster has too."""
    objects.add_nad("left", cidr="10.1.1.0/24")
    uid = objects.add_pod("web-0", networks=NETWORKS, node=NODE)
    upstream = UpstreamKubeManager(caller)
    pod_network = await upstream.pod_network(POD_CIDR)
    left = await upstream.nad_network("left", "10.1.1.0/24", "10.1.1.254", namespace="blue")
    router = await caller.create(
        "virtual-router",
        fq_name=["default-global-system-config", ROUTER],
        parent_type="global-system-config",
    )
    pod = await upstream.pod(
        "web-0", [("default", pod_network), ("left", left)], router=router, uid=uid, namespace="blue"
    )
    return Site(pod_network, left, router, pod)
