"""Reserved MAC addresses: manager and agent refuse what the datapath uses itself."""

import uuid

import pytest

from cni_contrail.datapath import reserved_macs as datapath
from cni_contrail.datapath.desired import GATEWAY_MAC
from cni_contrail.datapath.tunnel_names import node_mac
from contrail_config import reserved_macs
from contrail_config.objects import interface_mac


@pytest.mark.parametrize("mac", [GATEWAY_MAC, node_mac("192.0.2.2"), node_mac("fd00::2"), "0e:ff:ff:ff:ff:ff"])
def test_what_the_datapath_gives_gateways_and_nodes_is_reserved(mac: str) -> None:
    owner = reserved_macs.reserved_for(mac)
    assert owner is not None
    assert datapath.mac_problem(mac) == f"MAC {mac} is reserved for {owner}"


@pytest.mark.parametrize("mac", ["00:00:5e:00:01:01", "02:00:00:00:00:0e", "0c:00:00:00:00:01", "f0:0e:00:00:00:01"])
def test_other_unicast_macs_are_not(mac: str) -> None:
    assert (reserved_macs.reserved_for(mac), datapath.mac_problem(mac)) == (None, None)


def test_no_derived_mac_is_reserved() -> None:
    uuids = [str(uuid.UUID(bytes=bytes([first]) * 16)) for first in range(256)]
    derived = [interface_mac(each, attempt) for each in uuids for attempt in (0, 1)]
    assert not [mac for mac in derived if reserved_macs.reserved_for(mac)]


@pytest.mark.parametrize("mac", ["01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"])
def test_the_datapath_takes_no_group_address_and_not_zero(mac: str) -> None:
    assert datapath.mac_problem(mac) == f"MAC {mac} is not a unicast address"
