"""Names and MACs of tunnels."""

from cni_contrail.datapath.tunnel_names import bridged_tunnel, node_gateway, node_mac, routed_tunnel


def test_each_family_has_a_tunnel_of_its_own() -> None:
    assert (bridged_tunnel("192.0.2.1"), bridged_tunnel("2001:db8::1")) == ("vx0", "vx6")
    assert (routed_tunnel("192.0.2.1"), routed_tunnel("2001:db8::1")) == ("contrail.0", "contrail.6")


def test_the_mac_of_a_node_follows_from_its_address_and_is_not_one_of_a_pod() -> None:
    assert node_mac("192.0.2.1") == "0e:00:c0:00:02:01"
    found = {node_mac(f"2001:db8::{number:x}") for number in range(1000)}
    assert len(found) == 1000
    assert all(mac.startswith("0e:") for mac in found)
    assert node_gateway("192.0.2.1") == "fe80::c00:c0ff:fe00:201"
