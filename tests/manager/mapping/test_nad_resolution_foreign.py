"""NADs of other plugins: not served in thick mode; under Multus skipped, but counted."""

import pytest

from manager.configuration import ManagerConfiguration, MetaPlugin, MetaPluginSettings
from manager.dependencies import nad_dependency
from manager.mapping.errors import PodRefusedError, PodWaitsError
from manager.reasons import Reason
from tests.support.catalogues import resolve
from tests.support.pods import FOREIGN_CONFIG, make_nad, make_pod

NADS = (make_nad("net-a"), make_nad("mac", config=FOREIGN_CONFIG), make_nad("disk", config=None))


def under_multus(default_networks: int = 0) -> ManagerConfiguration:
    return ManagerConfiguration(meta_plugin=MetaPluginSettings(MetaPlugin.MULTUS, default_networks))


@pytest.mark.parametrize(
    ("networks", "culprit"), [("net-a,mac", "blue/mac is of plugin 'macvlan'"), ("disk", "blue/disk is of another")]
)
def test_without_a_meta_plugin_the_pod_waits(networks: str, culprit: str) -> None:
    with pytest.raises(PodWaitsError, match=culprit) as caught:
        resolve(make_pod(networks=networks), *NADS)
    assert caught.value.reason is Reason.FOREIGN_NETWORK
    assert all(
        dependency in {nad_dependency("blue/mac"), nad_dependency("blue/disk")}
        for dependency in caught.value.dependencies
    )


def test_under_multus_foreign_nads_are_skipped_but_counted() -> None:
    pod = make_pod(networks="mac,net-a,disk,net-a@left,mac,net-a")
    interfaces = resolve(pod, *NADS, configuration=under_multus()).interfaces
    assert [each.nad for each in interfaces] == [None, "blue/net-a", "blue/net-a", "blue/net-a"]
    assert [each.attachment for each in interfaces] == [None, "net2", "left", "net6"]


def test_under_multus_default_networks_are_counted_first() -> None:
    interfaces = resolve(make_pod(networks="mac,net-a"), *NADS, configuration=under_multus(3)).interfaces
    assert interfaces[1].attachment == "net5"


@pytest.mark.parametrize(("system", "expected"), [(("kube-system",), "net4"), (("kube-system", "blue"), "net1")])
def test_pods_of_system_namespaces_have_no_default_networks(system: tuple[str, ...], expected: str) -> None:
    settings = MetaPluginSettings(MetaPlugin.MULTUS, default_networks=3, system_namespaces=system)
    configuration = ManagerConfiguration(meta_plugin=settings)
    assert resolve(make_pod(networks="net-a"), *NADS, configuration=configuration).interfaces[1].attachment == expected


def test_unsupported_features_can_be_requested_from_other_plugins_only() -> None:
    multus = under_multus()
    asked = '[{{"name": "{}", "bandwidth": {{"ingressRate": 1}}}}]'
    assert len(resolve(make_pod(networks=asked.format("mac")), *NADS, configuration=multus).interfaces) == 1
    with pytest.raises(PodRefusedError, match="blue/net-a: bandwidth"):
        resolve(make_pod(networks=asked.format("net-a")), *NADS, configuration=multus)
