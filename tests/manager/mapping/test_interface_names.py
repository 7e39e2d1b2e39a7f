"""Two interfaces with the same name in one sandbox are rejected before anything is written."""

import pytest

from manager.configuration import ManagerConfiguration, MetaPlugin, MetaPluginSettings
from manager.mapping.errors import PodRefusedError
from manager.reasons import Reason
from tests.support.catalogues import DEFAULTS, resolve
from tests.support.pods import FOREIGN_CONFIG, make_nad, make_pod

NADS = (make_nad("net-a"), make_nad("net-b", cidr="10.2.0.0/16"), make_nad("mac", config=FOREIGN_CONFIG))


def under_multus(default_networks: int = 0) -> ManagerConfiguration:
    return ManagerConfiguration(meta_plugin=MetaPluginSettings(MetaPlugin.MULTUS, default_networks))


@pytest.mark.parametrize(
    ("configuration", "networks"),
    [
        (DEFAULTS, "net-a@left,net-b@right"),
        (DEFAULTS, "net-a@eth7,net-b"),
        (DEFAULTS, "net-a@eth1,net-b"),
        (DEFAULTS, "net-a@net2,net-b"),
        (DEFAULTS, "net-a@fifteen-bytes-x,net-b"),
        (under_multus(), "net-a@eth1,net-b@eth2"),
        (under_multus(), "net-a@net3,net-b"),
        (under_multus(2), "net-a@net5,net-b"),
    ],
)
def test_different_names_are_accepted(configuration: ManagerConfiguration, networks: str) -> None:
    assert len(resolve(make_pod(networks=networks), *NADS, configuration=configuration).interfaces) == 3


@pytest.mark.parametrize(
    ("configuration", "networks", "culprit"),
    [
        (DEFAULTS, "net-a@eth2,net-b", "'eth2'"),
        (DEFAULTS, "net-a,net-b@eth1", "'eth1'"),
        (DEFAULTS, "net-a@left,net-b@left", "'left'"),
        (DEFAULTS, "net-a@eth0", "'eth0'"),
        (DEFAULTS, "net-a@lo", "'lo'"),
        (DEFAULTS, "net-a@sixteen-bytes-xx", "15"),
        (under_multus(), "net-a@net2,net-b", "'net2'"),
        (under_multus(), "mac,net-b@net1", "'net1'"),
        (under_multus(), "mac@net2,net-b", "'net2'"),
        (under_multus(2), "net-a@net1", "default network 1 of Multus"),
        (under_multus(2), "net-a@net4,net-b", "'net4'"),
    ],
)
def test_unavailable_names_are_rejected(configuration: ManagerConfiguration, networks: str, culprit: str) -> None:
    with pytest.raises(PodRefusedError, match=culprit) as caught:
        resolve(make_pod(networks=networks), *NADS, configuration=configuration)
    assert caught.value.reason is Reason.ANNOTATION_INVALID


def test_a_pod_of_a_system_namespace_may_have_the_name_of_a_default_network() -> None:
    configuration = ManagerConfiguration(meta_plugin=MetaPluginSettings(MetaPlugin.MULTUS, 2, ("blue",)))
    assert (
        resolve(make_pod(networks="net-a@net2"), *NADS, configuration=configuration).interfaces[1].attachment == "net2"
    )


def test_both_elements_are_named() -> None:
    with pytest.raises(PodRefusedError, match="element 2 would be named 'eth2' like element 1"):
        resolve(make_pod(networks="net-a@eth2,net-b"), *NADS)
