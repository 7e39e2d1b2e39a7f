"""The runtime with real plugins, those of Debian in /usr/lib/cni, in temporary namespaces."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.runtime.attachment import Attachment
from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.configuration import NetworkList, parse_list
from cni_contrail.runtime.errors import NetworkConfigurationError, PluginCallError
from cni_contrail.runtime.sandbox import inside
from tests.support.netns import Netns

CHECKED = ("0.4.0", "1.0.0")


@pytest.fixture
def node(make_netns: Callable[[str], Netns]) -> Netns:
    return make_netns("node")


@pytest.fixture
def pod(make_netns: Callable[[str], Netns]) -> Netns:
    return make_netns("pod")


@pytest.fixture
def attachment(pod: Netns) -> Attachment:
    return Attachment("a" * 64, pod.path, "eth0", args=(("IgnoreUnknown", "1"), ("K8S_POD_NAME", "web-0")))


@pytest.fixture
def debian(tmp_path: Path) -> Runtime:
    return Runtime(["/usr/lib/cni"], cache_dir=str(tmp_path / "cache"))


@pytest.fixture
def make_list(tmp_path: Path) -> Callable[..., NetworkList]:
    """Returns a list of `bridge` with `host-local`, followed by further plugins."""

    def make(*chained: dict[str, Any], version: str) -> NetworkList:
        ipam = {"type": "host-local", "subnet": "10.99.0.0/24", "dataDir": str(tmp_path / "ipam")}
        bridge = {"type": "bridge", "bridge": "ctbr0", "isGateway": True, "ipam": ipam}
        document = {"cniVersion": version, "name": "real", "plugins": [bridge, *chained]}
        return parse_list(json.dumps(document).encode(), origin="real.conflist")

    return make


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0"])
def test_a_bridge_is_attached_and_detached_in_every_version(
    debian: Runtime,
    make_list: Callable[..., NetworkList],
    attachment: Attachment,
    node: Netns,
    pod: Netns,
    version: str,
) -> None:
    bridge = make_list(version=version)
    with inside(node.path):
        result = debian.add(bridge, attachment)
        assert result["cniVersion"] == version
        assert "10.99.0.2/24" in pod.ip("addr", "show", "eth0")
        debian.delete(bridge, attachment)
    assert pod.links() == []
    assert node.links() == ["ctbr0"]


@pytest.mark.parametrize("version", CHECKED)
def test_a_chain_is_checked(
    debian: Runtime,
    make_list: Callable[..., NetworkList],
    attachment: Attachment,
    node: Netns,
    pod: Netns,
    version: str,
) -> None:
    tuning = {"type": "tuning", "sysctl": {"net.ipv4.conf.all.log_martians": "1"}}
    chain = make_list(tuning, version=version)
    with inside(node.path):
        debian.add(chain, attachment)
        debian.check(chain, attachment)
        pod.ip("addr", "flush", "dev", "eth0")
        with pytest.raises(PluginCallError, match=r"plugin bridge failed \(CHECK\)"):
            debian.check(chain, attachment)
        debian.delete(chain, attachment)


def test_capability_arguments_reach_the_plugin_that_declares_them(
    debian: Runtime, make_list: Callable[..., NetworkList], attachment: Attachment, node: Netns, pod: Netns
) -> None:
    chain = make_list({"type": "tuning", "capabilities": {"mac": True}}, version="1.0.0")
    with_mac = dataclasses.replace(attachment, capability_args={"mac": "02:00:00:00:00:07", "ips": ["10.99.0.77/24"]})
    with inside(node.path):
        result = debian.add(chain, with_mac)
        debian.delete(chain, with_mac)
    assert [interface["mac"] for interface in result["interfaces"] if interface.get("sandbox")] == ["02:00:00:00:00:07"]
    assert result["ips"][0]["address"] == "10.99.0.2/24"


def test_portmap_accepts_the_previous_result(
    debian: Runtime, make_list: Callable[..., NetworkList], attachment: Attachment, node: Netns
) -> None:
    chain = make_list({"type": "portmap", "capabilities": {"portMappings": True}}, version="1.0.0")
    with inside(node.path):
        result = debian.add(chain, attachment)
        debian.delete(chain, attachment)
    assert [interface["name"] for interface in result["interfaces"]][-1] == "eth0"


def test_two_interfaces_of_one_container_are_two_attachments(
    debian: Runtime, make_list: Callable[..., NetworkList], attachment: Attachment, node: Netns, pod: Netns
) -> None:
    bridge = make_list(version="1.0.0")
    second = dataclasses.replace(attachment, ifname="net1")
    with inside(node.path):
        debian.add(bridge, attachment)
        debian.add(bridge, second)
        assert pod.links() == ["eth0", "net1"]
        debian.delete(bridge, second)
        assert pod.links() == ["eth0"]
        debian.check(bridge, attachment)
        debian.delete(bridge, attachment)


def test_the_loopback_plugin_runs_from_a_single_configuration(debian: Runtime, pod: Netns, tmp_path: Path) -> None:
    pod.ip("link", "set", "lo", "down")
    loopback = parse_list(b'{"cniVersion":"0.3.1","name":"lo","plugins":[{"type":"loopback"}]}', origin="lo")
    debian.add(loopback, Attachment("a" * 64, pod.path, "lo"))
    assert "UP" in pod.ip("link", "show", "lo")


def test_an_error_of_a_real_plugin_is_reported_with_its_code(
    debian: Runtime, make_list: Callable[..., NetworkList], attachment: Attachment, node: Netns
) -> None:
    bridge = make_list(version="1.0.0")
    nowhere = dataclasses.replace(attachment, netns="/run/netns/ct-not-there")
    with inside(node.path), pytest.raises(PluginCallError) as caught:
        debian.add(bridge, nowhere)
    assert caught.value.code == 999
    assert "failed to open netns" in caught.value.msg


def test_del_without_the_namespace_releases_the_address(
    debian: Runtime,
    make_list: Callable[..., NetworkList],
    attachment: Attachment,
    node: Netns,
    pod: Netns,
    tmp_path: Path,
) -> None:
    bridge = make_list(version="1.0.0")
    reserved = tmp_path / "ipam" / "real" / "10.99.0.2"
    with inside(node.path):
        debian.add(bridge, attachment)
        assert reserved.exists()
        pod.delete()
        debian.delete(bridge, dataclasses.replace(attachment, netns=""))
        debian.delete(bridge, attachment)
    assert not reserved.exists()


@pytest.mark.parametrize("plugin", sorted(os.listdir("/usr/lib/cni")))
def test_every_plugin_reports_its_versions(debian: Runtime, plugin: str) -> None:
    document = {"cniVersion": "1.0.0", "name": "real", "plugins": [{"type": plugin}]}
    debian.check_versions(parse_list(json.dumps(document).encode(), origin="real.conflist"))


def test_an_unsupported_version_is_reported_before_and_at_add(
    debian: Runtime, make_list: Callable[..., NetworkList], attachment: Attachment, node: Netns
) -> None:
    bridge = make_list(version="1.1.0")
    with pytest.raises(
        NetworkConfigurationError, match=r"CNI version 1\.1\.0 is not supported by plugin bridge \(it supports"
    ):
        debian.check_versions(bridge)
    with inside(node.path), pytest.raises(PluginCallError) as caught:
        debian.add(bridge, attachment)
    assert caught.value.code == 1


def test_garbage_collection_removes_stale_attachments_and_keeps_valid_ones(
    debian: Runtime,
    make_list: Callable[..., NetworkList],
    attachment: Attachment,
    make_netns: Callable[[str], Netns],
    node: Netns,
    pod: Netns,
    tmp_path: Path,
) -> None:
    chain = make_list({"type": "tuning", "mtu": 1400}, version="1.0.0")
    gone = make_netns("gone")
    stale = Attachment("b" * 64, gone.path, "eth0")
    with inside(node.path):
        debian.add(chain, stale)
        debian.add(chain, attachment)
        gone.delete()
        assert debian.garbage_collect(chain, [attachment.key]) == (stale.key,)
        debian.check(chain, attachment)
        assert [path.name for path in (tmp_path / "ipam" / "real").glob("10.*")] == ["10.99.0.3"]
        assert debian.garbage_collect(chain, []) == (attachment.key,)
    assert pod.links() == []


def test_a_result_cached_in_another_version_is_converted(
    debian: Runtime, make_list: Callable[..., NetworkList], attachment: Attachment, node: Netns, pod: Netns
) -> None:
    with inside(node.path):
        debian.add(make_list(version="0.3.1"), attachment)
        debian.check(make_list(version="1.0.0"), attachment)
        debian.delete(make_list(version="0.4.0"), attachment)
    assert pod.links() == []
