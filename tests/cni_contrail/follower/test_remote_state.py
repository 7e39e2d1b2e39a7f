"""Reading what the desired state says about other nodes."""

import json
from typing import Any

import pytest

from cni_contrail.datapath.desired import RemoteAddress, RemoteBlock, RemoteEndpoint, RoutedNetwork, Underlay
from cni_contrail.errors import PluginError
from cni_contrail.follower.desired_state import DesiredState, read_desired_state

NETWORK: dict[str, Any] = {"vni": 5, "mtu": 1450, "gateways": [], "ports": [], "snat": False, "forwarding": False}
STATE: dict[str, Any] = {"version": "v", "networks": [NETWORK], "routed": [], "masquerade": None, "fabric-subnets": []}
TUNNEL: dict[str, Any] = {"tunnel": {"addresses": ["192.0.2.1", "2001:DB8::1"], "port": 4789}}


def read(state: dict[str, Any]) -> DesiredState:
    return read_desired_state(json.dumps(state).encode())


def test_without_keys_about_other_nodes_there_are_none() -> None:
    for state in (STATE, STATE | {"tunnel": None, "routed-network": None, "nodes": []}):
        found = read(state)
        assert found.underlay.addresses == ()
        assert found.underlay.routed is None
        assert (found.networks[0].remotes, found.networks[0].blocks, found.networks[0].is_complete) == ((), (), True)


def test_tunnel_addresses_and_known_nodes_are_read() -> None:
    nodes = [{"name": "node-2", "addresses": ["192.0.2.2"]}, {"name": "node-3", "addresses": ["192.0.2.3", "::0:3"]}]
    found = read(STATE | TUNNEL | {"nodes": nodes})
    assert found.underlay == Underlay(
        ("192.0.2.1", "2001:db8::1"), 4789, frozenset(("192.0.2.2", "192.0.2.3", "::3")), None
    )


def test_remote_endpoints_and_blocks_of_a_network_are_read() -> None:
    remotes = [{"mac": "02:00:00:00:00:AB", "addresses": ["10.0.0.7", "FD00::7"], "tunnel": "192.0.2.2"}]
    blocks = [{"cidr": "10.0.0.64/26", "tunnel": "192.0.2.2"}]
    (found,) = read(
        STATE | {"networks": [NETWORK | {"remotes": remotes, "remote-blocks": blocks, "complete": False}]}
    ).networks
    assert found.remotes == (RemoteEndpoint("02:00:00:00:00:ab", ("10.0.0.7", "fd00::7"), "192.0.2.2"),)
    assert found.blocks == (RemoteBlock("10.0.0.64/26", "192.0.2.2"),)
    assert not found.is_complete


def test_index_0_on_other_nodes_is_read() -> None:
    routed = {
        "vni": 1,
        "mtu": 1450,
        "addresses": ["10.233.0.0"],
        "own-blocks": ["10.233.0.0/26"],
        "remotes": [{"cidr": "10.233.0.64/26", "tunnel": "192.0.2.2"}],
        "complete": False,
        "node-addresses": [{"address": "10.233.0.64", "tunnel": "192.0.2.2"}],
    }
    found = read(STATE | TUNNEL | {"routed-network": routed}).underlay
    remotes = (RemoteBlock("10.233.0.64/26", "192.0.2.2"),)
    others = (RemoteAddress("10.233.0.64", "192.0.2.2"),)
    own = ("10.233.0.0",), ("10.233.0.0/26",)
    assert found.routed == RoutedNetwork(1, 1450, *own, remotes, is_complete=False, node_addresses=others)


@pytest.mark.parametrize(
    "change",
    [
        {"tunnel": {"addresses": [], "port": 4789}},
        {"tunnel": {"addresses": ["192.0.2.1", "192.0.2.2"], "port": 4789}},
        {"tunnel": {"addresses": ["192.0.2.1"], "port": 0}},
        {"tunnel": {"addresses": ["192.0.2.1"]}},
        {"tunnel": ["192.0.2.1"]},
        TUNNEL | {"nodes": [{"name": "node-2"}]},
        TUNNEL | {"nodes": [{"name": "node-2", "addresses": ["192.0.2"]}]},
        TUNNEL | {"routed-network": {"vni": 1 << 24, "mtu": 1450}},
        TUNNEL | {"routed-network": {"vni": 1, "mtu": 1450, "remotes": [{"cidr": "10.0.0.0", "tunnel": "192.0.2.2"}]}},
        {"networks": [NETWORK | {"remotes": [{"mac": "02", "addresses": [], "tunnel": "192.0.2.2"}]}]},
        {"networks": [NETWORK | {"remotes": [{"mac": "02:00:00:00:00:01", "addresses": []}]}]},
        {"networks": [NETWORK | {"remotes": ["02:00:00:00:00:01"]}]},
        {"networks": [NETWORK | {"remote-blocks": [{"cidr": "10.0.0.0/33", "tunnel": "192.0.2.2"}]}]},
        {"networks": [NETWORK | {"complete": "yes"}]},
    ],
)
def test_a_malformed_value_is_one_error(change: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match="desired state of the datapath"):
        read(STATE | change)
