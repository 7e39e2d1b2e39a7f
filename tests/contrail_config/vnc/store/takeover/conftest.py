"""Fixtures: what Contrail's kube-manager wrote."""

import pytest

from tests.contrail_config.vnc.store.takeover.servers import CIDR, GATEWAY, NAD, POD_CIDR, UID
from tests.support.contrail_callers import Caller, Made
from tests.support.upstream_kube_manager import UpstreamKubeManager, UpstreamPod


@pytest.fixture
def upstream(caller: Caller) -> UpstreamKubeManager:
    return UpstreamKubeManager(caller)


@pytest.fixture
async def pod_network(upstream: UpstreamKubeManager) -> Made:
    return await upstream.pod_network(POD_CIDR)


@pytest.fixture
async def network(upstream: UpstreamKubeManager) -> Made:
    return await upstream.nad_network(NAD, CIDR, GATEWAY)


@pytest.fixture
async def pod(upstream: UpstreamKubeManager, pod_network: Made, network: Made, router: Made) -> UpstreamPod:
    """A pod in the pod network and twice in the NAD's network."""
    made = await upstream.pod("p1", [("default", pod_network), (NAD, network), (NAD, network)], router=router, uid=UID)
    await upstream.annotate(made.interfaces[2], interface="left")
    return made
