"""The plugin called by libcni through cnitool, with the shipped network configuration list."""

import uuid

from tests.e2e.cnitool import Cnitool
from tests.e2e.interfaces import default_gateways, interfaces
from tests.e2e.node import MakePod, Node
from tests.e2e.sandbox import MakeSandbox, Sandbox


def test_add_creates_every_interface_of_the_pod_and_returns_the_first(
    cnitool: Cnitool, node: Node, sandbox: Sandbox
) -> None:
    result = cnitool.add(sandbox)
    allocated = node.allocated(sandbox.container_id)
    assert list(allocated) == ["eth0", "eth1", "front"]
    assert interfaces(sandbox.ip) == allocated
    assert default_gateways(sandbox.ip) == {"10.32.0.1": "eth0", "fd00:10::1": "eth1"}
    host_end, sandbox_end = result["interfaces"]
    assert host_end["name"] in node.host.net.links()
    assert sandbox_end == {"name": "eth0", "mac": allocated["eth0"].mac, "mtu": 1500, "sandbox": sandbox.path}
    assert [(each["address"], each["interface"]) for each in result["ips"]] == [(*allocated["eth0"].addresses, 1)]
    assert result["routes"] == [{"dst": "0.0.0.0/0", "gw": "10.32.0.1"}]
    cnitool.run("del", sandbox)


def test_ports_are_plugged_from_add_to_del(cnitool: Cnitool, node: Node, sandbox: Sandbox) -> None:
    cnitool.add(sandbox)
    assert len(node.plugged(sandbox.container_id)) == 3
    cnitool.run("check", sandbox)
    cnitool.run("del", sandbox)
    assert node.plugged(sandbox.container_id) == []
    assert node.host.net.links() == []
    assert interfaces(sandbox.ip) == {}


def test_check_reports_missing_addresses(cnitool: Cnitool, sandbox: Sandbox) -> None:
    cnitool.add(sandbox)
    sandbox.ip("addr", "flush", "dev", "eth1", "scope", "global")
    assert "eth1" in cnitool.rejected("check", sandbox)
    cnitool.run("del", sandbox)


def test_a_second_add_is_rejected_and_changes_nothing(cnitool: Cnitool, sandbox: Sandbox) -> None:
    cnitool.add(sandbox)
    rejected = cnitool.rejected("add", sandbox)
    assert "attachment eth0 of container" in rejected
    assert "already exists" in rejected
    cnitool.run("check", sandbox)
    cnitool.run("del", sandbox)


def test_del_succeeds_repeatedly_and_without_add(cnitool: Cnitool, sandbox: Sandbox) -> None:
    cnitool.run("del", sandbox)
    cnitool.add(sandbox)
    cnitool.run("del", sandbox)
    cnitool.run("del", sandbox)


def test_del_succeeds_after_the_namespace_is_deleted(cnitool: Cnitool, node: Node, sandbox: Sandbox) -> None:
    cnitool.add(sandbox)
    sandbox.remove()
    cnitool.run("del", sandbox)
    assert node.plugged(sandbox.container_id) == []


def test_a_sandbox_can_be_attached_again_after_del(cnitool: Cnitool, sandbox: Sandbox) -> None:
    first = cnitool.add(sandbox)
    cnitool.run("del", sandbox)
    assert cnitool.add(sandbox) == first
    cnitool.run("del", sandbox)


def test_the_pod_is_named_by_cni_args(
    cnitool: Cnitool, node: Node, make_sandbox: MakeSandbox, make_pod: MakePod
) -> None:
    make_pod("web-0", networks="default/blue", namespace="shop")
    sandbox = make_sandbox()
    names = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0"
    cnitool.add(sandbox, CNI_ARGS=names)
    assert interfaces(sandbox.ip) == node.allocated("web-0", namespace="shop")
    cnitool.run("check", sandbox, CNI_ARGS=names)
    cnitool.run("del", sandbox, CNI_ARGS=names)


def test_a_pod_with_another_uid_is_rejected(
    cnitool: Cnitool, node: Node, make_sandbox: MakeSandbox, make_pod: MakePod
) -> None:
    make_pod("web-0", networks="default/blue", namespace="shop")
    (uid,) = (pod["uid"] for pod in node.items("pods", "?namespace=shop"))
    names = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID="
    sandbox = make_sandbox()
    with node.plugin_settings(poll_timeout=0.1, poll_retries=2):
        assert "shop/web-0" in cnitool.rejected("add", sandbox, CNI_ARGS=f"{names}{uuid.uuid4()}")
    cnitool.run("del", sandbox)
    cnitool.add(sandbox, CNI_ARGS=f"{names}{uid}")
    cnitool.run("del", sandbox)


def test_the_runtime_names_the_primary_interface(cnitool: Cnitool, sandbox: Sandbox) -> None:
    cnitool.add(sandbox, CNI_IFNAME="uplink")
    assert list(interfaces(sandbox.ip)) == ["uplink", "eth1", "front"]
    cnitool.run("check", sandbox, CNI_IFNAME="uplink")
    cnitool.run("del", sandbox, CNI_IFNAME="uplink")


def test_an_unknown_pod_is_rejected_with_its_name(cnitool: Cnitool, node: Node, make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox()
    with node.plugin_settings(poll_timeout=0.1, poll_retries=2):
        message = cnitool.rejected("add", sandbox)
    assert f"has no interfaces for pod default/{sandbox.container_id}" in message
    assert node.host.net.links() == []
    cnitool.run("del", sandbox)


def test_the_agent_is_reachable_by_its_socket(cnitool: Cnitool, node: Node, sandbox: Sandbox) -> None:
    with node.plugin_settings(agent_socket=str(node.socket), vrouter_port=1):
        cnitool.add(sandbox)
        assert len(node.plugged(sandbox.container_id)) == 3
        cnitool.run("del", sandbox)
    assert node.plugged(sandbox.container_id) == []


def test_allocated_addresses_and_macs_can_be_requested(cnitool: Cnitool, node: Node, sandbox: Sandbox) -> None:
    eth0 = node.allocated(sandbox.container_id)["eth0"]
    cnitool.add(sandbox, CAP_ARGS=f'{{"mac": "{eth0.mac}", "ips": ["{min(eth0.addresses)}"]}}')
    cnitool.run("check", sandbox)
    cnitool.run("del", sandbox)


def test_a_requested_address_that_is_not_allocated_is_rejected(cnitool: Cnitool, sandbox: Sandbox) -> None:
    message = cnitool.rejected("add", sandbox, CAP_ARGS='{"ips": ["10.32.7.7/12"]}')
    assert "address 10.32.7.7/12 is requested" in message
    assert interfaces(sandbox.ip) == {}
    cnitool.run("del", sandbox)
