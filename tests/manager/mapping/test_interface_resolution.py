"""Whatever the annotations, a pod gets a valid list of interfaces or one reason why it gets none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.objects import DefaultGateway, VirtualMachine, interface_name
from manager.configuration import ManagerConfiguration, MetaPlugin, MetaPluginSettings
from manager.mapping.errors import MappingError
from manager.source import Pod
from tests.support.catalogues import build
from tests.support.pods import FOREIGN_CONFIG, make_nad, make_pod

NADS = (
    make_nad("net-a", cidr="10.1.0.0/16"),
    make_nad("net-d", cidr="10.4.0.0/16,fd00:4::/64"),
    make_nad("net-6", cidr="fd00:6::/64"),
    make_nad("mac", config=FOREIGN_CONFIG),
)
THICK = ManagerConfiguration()
MULTUS = ManagerConfiguration(meta_plugin=MetaPluginSettings(MetaPlugin.MULTUS, default_networks=1))

_NAMES = st.sampled_from(["net-a", "net-d", "net-6", "mac", "blue/net-a", "nope"])
_INTERFACES = st.sampled_from(["left", "right", "eth1", "eth2", "net1", "net2", "net3", "lo"])
_ELEMENTS = st.fixed_dictionaries(
    {"name": _NAMES},
    optional={
        "interface": _INTERFACES,
        "mac": st.sampled_from(["02:00:00:00:00:07", "02:00:00:00:00:08", "01:00:00:00:00:00"]),
        "ips": st.lists(st.sampled_from(["10.1.0.7", "10.4.0.7", "fd00:4::7", "fd00:6::7", "10.9.0.1"]), max_size=2),
        "default-route": st.lists(st.sampled_from(["10.1.0.1", "10.4.0.9", "fd00:4::9", "fd00:6::1"]), max_size=2),
    },
)
_NETWORKS = st.one_of(
    st.lists(_ELEMENTS, max_size=5).map(json.dumps),
    st.lists(st.tuples(_NAMES, _INTERFACES).map("@".join) | _NAMES, max_size=5).map(",".join),
    st.text(max_size=40),
)
_GATEWAYS = st.none() | st.sampled_from(["eth0", "eth1", "net1", "net2", "left", "net-a", "net-d", "default", "nope"])

pods = st.builds(
    make_pod,
    networks=st.none() | _NETWORKS,
    default_network=st.none() | _NETWORKS,
    default_gw=_GATEWAYS,
)


def mapped(pod: Pod, configuration: ManagerConfiguration) -> VirtualMachine | str:
    """Returns the virtual machine, or reason and message of the error."""
    try:
        return build(pod, *NADS, configuration=configuration)
    except MappingError as error:
        return f"{error.reason}: {error}"


@pytest.mark.parametrize("configuration", [THICK, MULTUS], ids=["thick", "multus"])
@given(pod=pods)
def test_a_pod_gets_a_valid_list_of_interfaces_or_a_reason(configuration: ManagerConfiguration, pod: Pod) -> None:
    machine = mapped(pod, configuration)
    if isinstance(machine, str):
        assert not machine.endswith(": ")
        return
    _check_identities(machine)
    _check_names(machine, configuration)
    _check_default_gateways(machine)
    assert all(interface.addresses for interface in machine.interfaces)


@pytest.mark.parametrize("configuration", [THICK, MULTUS], ids=["thick", "multus"])
@given(pod=pods)
def test_mapping_is_deterministic(configuration: ManagerConfiguration, pod: Pod) -> None:
    assert mapped(pod, configuration) == mapped(pod, configuration)


@given(elements=st.lists(st.sampled_from(["net-a", "net-d", "net-6"]), max_size=6))
def test_interfaces_have_the_order_of_the_references(elements: list[str]) -> None:
    machine = mapped(make_pod(networks=",".join(elements)), THICK)
    assert isinstance(machine, VirtualMachine)
    assert [interface.nad for interface in machine.interfaces] == [None, *(f"blue/{name}" for name in elements)]


def _check_identities(machine: VirtualMachine) -> None:
    uuids: list[Any] = [interface.uuid for interface in machine.interfaces]
    assert len(set(uuids)) == len(uuids)
    macs = [(interface.network_uuid, interface.mac) for interface in machine.interfaces]
    assert len(set(macs)) == len(macs)
    addresses = [
        (interface.network_uuid, address.address) for interface in machine.interfaces for address in interface.addresses
    ]
    assert len(set(addresses)) == len(addresses)


def _check_names(machine: VirtualMachine, configuration: ManagerConfiguration) -> None:
    if configuration is THICK:
        names = [interface_name(index, interface.interface) for index, interface in enumerate(machine.interfaces)]
    else:
        names = [interface.attachment or "eth0" for interface in machine.interfaces]
    assert len(set(names)) == len(names)
    assert names[0] == "eth0"
    assert all(len(name.encode()) <= 15 for name in names)


def _check_default_gateways(machine: VirtualMachine) -> None:
    for family, own in ((4, DefaultGateway.IPV4), (6, DefaultGateway.IPV6)):
        carriers = [each for each in machine.interfaces if each.default_gw in (own, DefaultGateway.BOTH)]
        with_gateway = [
            each for each in carriers if any(address.family == family and address.gateway for address in each.addresses)
        ]
        assert len(with_gateway) <= 1
        assert len(carriers) <= 1
