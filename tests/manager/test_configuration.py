"""The manager's configuration file: every key, every default, and one clear message for all problems."""

import re
import socket
from pathlib import Path

import msgspec
import pytest

from contrail_config.objects import Route, Subnet
from contrail_service.errors import ConfigurationError
from manager.configuration import (
    EmbeddedStoreSettings,
    ManagerConfiguration,
    ManifestSourceSettings,
    MetaPlugin,
    MetaPluginSettings,
    NamespaceIsolation,
    PodNetworkSettings,
    load_manager_configuration,
)
from manager.mapping.virtual_network import pod_network

WHOLE = """
cluster-name: prod
node: worker-1
pod-network:
  subnets: [10.40.0.0/16, "fd00:40::/64"]
  gateway: ["fd00:40::ff"]
  dns: [10.40.0.53]
  mtu: 1400
  routes: [{dst: 10.96.0.0/12, gw: 10.40.0.9}, {dst: 192.168.0.0/16}]
source: {kind: manifests, path: /etc/pods}
store: {kind: embedded, path: /var/lib/contrail/store.db}
meta-plugin: {kind: multus, default-networks: 2, system-namespaces: [kube-system, infra], namespace: multus}
namespace-isolation: {enabled: true, global-namespaces: [default, shared]}
l3-beyond-nodes: 0
listen: "[::1]:8083"
metrics-listen: 0.0.0.0:9100
web-page: false
api-access: {allowed-hosts: ["*.example.org"], token-file: /etc/token}
"""

CONTRAIL = "source: {kind: kubernetes}\nstore: {kind: vnc"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "manager.yaml"


def load(path: Path, text: str) -> ManagerConfiguration:
    path.write_text(text)
    return load_manager_configuration(str(path))


@pytest.mark.parametrize("text", ["", "{}", "pod-network:\nsource:\nlisten:\n", "pod-network: {mtu: null}"])
def test_every_key_has_a_default(path: Path, text: str) -> None:
    configuration = load(path, text)
    assert configuration == ManagerConfiguration()
    assert configuration == load_manager_configuration(None)
    assert configuration.cluster_name == "k8s"
    assert configuration.node == socket.gethostname()
    assert configuration.pod_network == PodNetworkSettings(subnets=("10.32.0.0/12",), mtu="auto")
    assert configuration.source == ManifestSourceSettings(path=None)
    assert configuration.store == EmbeddedStoreSettings(path=None)
    assert configuration.meta_plugin == MetaPluginSettings(MetaPlugin.NONE, 0)
    assert configuration.namespace_isolation == NamespaceIsolation(enabled=False, global_namespaces=("default",))
    assert (configuration.listen, configuration.metrics_listen) == ("127.0.0.1:8083", None)


def test_every_key_is_read(path: Path) -> None:
    configuration = load(path, WHOLE)
    defaults = ManagerConfiguration(node="defaults")
    for key in msgspec.structs.asdict(configuration).keys() - {"network_slices"}:  # only in a cluster
        assert getattr(configuration, key) != getattr(defaults, key), key


def test_network_slices_are_for_clusters(path: Path) -> None:
    cluster = "source: {kind: kubernetes}\nstore: {kind: kubernetes}\n"
    assert not load(path, cluster).network_slices
    assert load(path, f"{cluster}network-slices: true").network_slices


def test_the_pod_network_is_built_from_its_section(path: Path) -> None:
    network = pod_network(load(path, WHOLE))
    assert network.name == "default-domain:prod-default:prod-default-pod-network"
    assert network.subnets == (Subnet("10.40.0.0/16", "10.40.0.1"), Subnet("fd00:40::/64", "fd00:40::ff"))
    assert (network.dns, network.mtu) == (("10.40.0.53",), 1400)
    assert network.routes == (Route("10.96.0.0/12", "10.40.0.9"), Route("192.168.0.0/16"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pods: {}", "unknown field `pods`"),
        ("pod-network: {subnet: []}", "pod-network: Object contains unknown field `subnet`"),
        ("pod-network: {mtu: big}", "pod-network.mtu: Invalid enum value 'big'"),
        ("pod-network: {mtu: 67}", "pod-network.mtu: "),
        ("pod-network: {subnets: 10.0.0.0/8}", "pod-network.subnets: Expected `array`"),
        ("pod-network: {subnets: []}", "pod-network.subnets: at least one is required"),
        ("pod-network: {subnets: [10.0.0.1/8]}", "pod-network.subnets: '10.0.0.1/8' has host bits"),
        ("pod-network: {subnets: [10.0.0.0/33]}", "pod-network.subnets: '10.0.0.0/33'"),
        ("pod-network: {subnets: [224.0.0.0/8]}", "pod-network.subnets: '224.0.0.0/8'"),
        ("pod-network: {subnets: [10.0.0.0/8, 10.1.0.0/16]}", "10.0.0.0/8 and 10.1.0.0/16 overlap"),
        ("pod-network: {gateway: [192.168.0.1]}", "pod-network.gateway: '192.168.0.1'"),
        (
            "pod-network: {gateway: [10.32.0.1, 10.32.0.2]}",
            "pod-network.gateway: '10.32.0.2': 10.32.0.0/12 already has",
        ),
        ("pod-network: {gateway: [10.47.255.255]}", "pod-network.gateway: '10.47.255.255'"),
        ("pod-network: {dns: [example.com]}", "pod-network.dns: 'example.com'"),
        ("pod-network: {dns: 10.0.0.1}", "pod-network.dns: Expected `array`"),
        ('pod-network: {subnets: ["fd00::/64"], mtu: 1279}', "pod-network.mtu: 1279 is below 1280"),
        ("pod-network: {routes: [{gw: 10.32.0.9}]}", "pod-network.routes[0]: Object missing required field `dst`"),
        ("pod-network: {routes: [{dst: 10.96.0.0/12, gw: 10.0.0.1}]}", "pod-network.routes[0]: gw 10.0.0.1"),
        ("pod-network: {routes: [{dst: 0.0.0.0/0}]}", "pod-network.routes[0]: dst 0.0.0.0/0"),
        ("source: {kind: files}", "source.kind: Invalid value 'files'"),
        ("source: {path: /x}", "source: Object missing required field `kind`"),
        ("source: {kind: manifests, kubeconfig: x}", "source: Object contains unknown field `kubeconfig`"),
        ("source: {kind: kubernetes, kubeconfig: x}", "store.kind: embedded: agents in a cluster cannot read it"),
        ("source: {kind: kubernetes, lease-namespace: ''}", "source.lease-namespace: '' is not a valid namespace name"),
        (
            "source: {kind: kubernetes, lease-namespace: A b}",
            "source.lease-namespace: 'A b' is not a valid namespace",
        ),
        ("store: {kind: etcd}", "store.kind: Invalid value 'etcd'"),
        ("store: {kind: kubernetes}", "store.kind: kubernetes: needs source.kind kubernetes"),
        ("network-slices: true", "network-slices: needs store.kind kubernetes"),
        ("store: {kind: vnc}", "store: Object missing required field `url`"),
        (f"{CONTRAIL}, url: []}}", "store.url: at least one is required"),
        (f"{CONTRAIL}, url: api}}", "store.url: 'api' is not http://HOST:PORT or https://HOST:PORT"),
        (f"{CONTRAIL}, url: http://api, password: x}}", "store: Object contains unknown field `password`"),
        (
            f"{CONTRAIL}, url: http://api, keystone: {{user: x}}}}",
            "store.keystone: Object missing required field `url`",
        ),
        (f"{CONTRAIL}, url: https://api, key-file: /x}}", "store.certificate-file: required"),
        (f"{CONTRAIL}, url: http://api, poll-interval: 0}}", "store.poll-interval: "),
        (f"{CONTRAIL}, url: http://api, projects: [admin]}}", "store.projects: 'admin' is not DOMAIN:PROJECT"),
        (f"network-slices: true\n{CONTRAIL}, url: http://api}}", "network-slices: needs store.kind kubernetes"),
        ("meta-plugin: {kind: genie}", "meta-plugin.kind: Invalid enum value 'genie'"),
        ("meta-plugin: {kind: multus, default-networks: -1}", "meta-plugin.default-networks: "),
        ("meta-plugin: {kind: none, default-networks: 1}", "meta-plugin.default-networks: needs a meta plugin"),
        ("source: {kind: kubernetes, node-selector: a b}", "source.node-selector: 'a b' is not a label selector"),
        ("meta-plugin: {kind: multus, namespace: A_b}", "meta-plugin.namespace: 'A_b'"),
        ("meta-plugin: {kind: multus, system-namespaces: [A_b]}", "meta-plugin.system-namespaces: 'A_b'"),
        ("namespace-isolation: {enabled: maybe}", "namespace-isolation.enabled: Expected `bool`"),
        ("namespace-isolation: {global-namespaces: [A_b]}", "namespace-isolation.global-namespaces: 'A_b'"),
        ("cluster-name: a__b", "cluster-name: "),
        ("cluster-name: a:b", "cluster-name: "),
        ("cluster-name: ''", "cluster-name: "),
        ("node: ''", "node: "),
        ("listen: 8083", "listen: Expected `str`"),
        ("listen: nowhere", "listen: 'nowhere' is not HOST:PORT"),
        ("metrics-listen: 0.0.0.0", "metrics-listen: '0.0.0.0' is not HOST:PORT"),
        ("a: b: c", "not valid YAML"),
        ("[]", "must be a mapping of keys"),
    ],
)
def test_a_problem_is_reported_with_the_path_of_its_key(path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(problem)) as caught:
        load(path, text)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_all_problems_are_reported_at_once(path: Path) -> None:
    text = "pod-network: {dns: [x], gateway: [y]}\nstore: {kind: vnc, url: []}\nmeta-plugin: {default-networks: 1}"
    with pytest.raises(ConfigurationError) as caught:
        load(path, text)
    for key in ("pod-network.dns", "pod-network.gateway", "store.url", "meta-plugin.default-networks"):
        assert key in str(caught.value)


def test_an_unchecked_configuration_is_rejected_on_use() -> None:
    wrong = ManagerConfiguration(pod_network=PodNetworkSettings(subnets=("nonsense",)))
    with pytest.raises(ConfigurationError, match=r"pod-network\.subnets: 'nonsense'"):
        pod_network(wrong)
