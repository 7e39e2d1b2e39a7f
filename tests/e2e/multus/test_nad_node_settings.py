"""NADs are written by tenants and read by root: they must not set file paths or the agent's address."""

import json
from typing import Any

import pytest

from tests.e2e.interfaces import interfaces
from tests.e2e.multus import leftovers
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.node_kinds import THIN, only_on
from tests.e2e.node import NETWORK

pytestmark = only_on(THIN)  # the plugin rejects them with either Multus

ATTEMPTS: dict[str, Any] = {
    "state-dir": "/etc",
    "config-dir": "/etc",
    "sysctl-dir": "/tmp",
    "netns-dir": "/tmp",
    "vif-type": "macvlan",
    "parent-interface": "lo",
    "log-file": "/etc/passwd",
    "agent-socket": "/tmp/mine.sock",
    "vrouter-ip": "192.0.2.1",
    "vrouter-port": 9092,
    "cluster-name": "another",
    "network-name": "old",
    "mode": "thick",
}
NUMBERS = {key: number for number, key in enumerate(ATTEMPTS)}


@pytest.fixture(scope="session")
def defined(cluster: Cluster) -> None:
    for key, value in ATTEMPTS.items():
        config = {"cniVersion": "1.0.0", "type": NETWORK, "contrail": {key: value}}
        cluster.add_nad(f"demo/try-{key}", config, cidr=f"10.{50 + NUMBERS[key]}.0.0/24")
    allowed = {"cniVersion": "1.0.0", "type": NETWORK, "contrail": {"mtu": 1400, "nad": "demo/allowed"}}
    cluster.add_nad("demo/allowed", allowed, cidr="10.40.0.0/24")


@pytest.mark.parametrize("key", ATTEMPTS)
def test_a_node_setting_in_a_nad_is_rejected_with_key_and_value(kubelet: Kubelet, defined: None, key: str) -> None:
    sandbox = kubelet.sandbox(f"blue,try-{key}")
    message = sandbox.add().failed()
    assert f"{key} is set node-wide" in message
    assert f"must not be changed to {json.dumps(ATTEMPTS[key])}" in message
    assert interfaces(sandbox.ip) == {}
    assert leftovers.of_this_plugin(sandbox) == []


def test_a_nad_may_set_mtu_and_its_own_name(kubelet: Kubelet, defined: None) -> None:
    sandbox = kubelet.sandbox("allowed,blue")
    sandbox.add().succeeded()
    assert interfaces(sandbox.ip)["net1"].mtu == 1400
