"""kube-proxy on each node of a cluster, in one mode after the other."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.e2e.across_nodes.cluster import POD_SUBNETS, Cluster
from tests.e2e.host import host_of
from tests.e2e.kube_proxy import MODES, KubeProxy


@contextmanager
def kube_proxies(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Runs one on each node, until the context is left. Each has programmed the Services that exist."""
    with ExitStack() as stack:
        for node, mode in zip(cluster.nodes, itertools.cycle(MODES), strict=False):
            work = folder / f"kube-proxy-{node.name}"
            work.mkdir()
            host = stack.enter_context(host_of(node.namespace))
            kubeconfig = cluster.server.kubeconfig()
            proxy = KubeProxy(host, work, kubeconfig, mode=mode, name=node.name, pods=POD_SUBNETS)
            stack.callback(proxy.kill)
            proxy.start()
        yield
