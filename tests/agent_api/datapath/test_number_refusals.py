"""Numbers (VNI) that disagree with the network's own: what has them is not connected, and reported by name."""

from collections.abc import Iterable

import msgspec

from agent_api.datapath.desired_state import Computation, DatapathOptions, desired_state
from agent_api.datapath.fabric import Fabric, RemoteEndpoint
from agent_api.datapath.slice_index import SliceIndex
from contrail_config.objects import Endpoint, NetworkSlice, VirtualMachine, VirtualMachineInterface
from tests.agent_api.datapath.test_desired_state import interface_in, make_pod
from tests.support.virtual_machines import NODE

RED, BLUE = ("default-domain", "k8s-red", "zz"), ("default-domain", "k8s-blue", "aa")
OTHER = "other"
TUNNELS = {NODE: ("192.0.2.1",), OTHER: ("192.0.2.2",)}


def make_slice(node: str, vni: int, *interfaces: VirtualMachineInterface) -> NetworkSlice:
    uuid, name = interfaces[0].network_uuid, interfaces[0].network
    endpoints = tuple(
        Endpoint(each.mac, tuple(address.address for address in each.addresses)).text for each in interfaces
    )
    return NetworkSlice(uuid, node, name, vni, tunnel=TUNNELS[node], endpoints=endpoints)


def computed(node: str, pods: Iterable[VirtualMachine], *slices: NetworkSlice) -> Computation:
    index = SliceIndex()
    for item in slices:
        index.put(item)
        index.complete(item.network_uuid)
    fabric = Fabric(index, node=node, port=4789)
    return desired_state(list(pods), lambda _, interface: f"tap-{interface.uuid}", DatapathOptions(), fabric)


def test_nodes_that_exchanged_the_numbers_of_two_networks_do_not_connect_them() -> None:
    old_red, old_blue, new_blue = (
        interface_in(RED, 1, vni=2),
        interface_in(BLUE, 2, vni=4),
        interface_in(BLUE, 3, vni=2),
    )
    slices = (make_slice(NODE, 4, old_red), make_slice(NODE, 2, old_blue), make_slice(OTHER, 2, new_blue))
    first = computed(NODE, [make_pod(old_red), make_pod(old_blue)], *slices)
    assert first.state.networks == ()
    assert sorted(refusal.message for refusal in first.refused) == [
        f"network {name}: pods with VNI {had} are not connected: the network has VNI {number} now: recreate them"
        for name, had, number in (("default-domain:k8s-blue:aa", 4, 2), ("default-domain:k8s-red:zz", 2, 4))
    ]
    second = computed(OTHER, [make_pod(new_blue)], *slices)
    assert [network.vni for network in second.state.networks] == [2]
    assert second.refused == ()


def test_a_node_that_has_the_network_with_another_number_is_left_out() -> None:
    here, there, elsewhere = (interface_in(BLUE, number) for number in (1, 2, 3))
    wrong, right = make_slice(OTHER, 9, there), msgspec.structs.replace(make_slice(OTHER, 5, elsewhere), node="third")
    found = computed(NODE, [make_pod(here)], make_slice(NODE, 5, here), wrong, right)
    (network,) = found.state.networks
    assert network.remotes == (RemoteEndpoint(elsewhere.mac, ("10.1.0.3", "fd00::3"), "192.0.2.2"),)
    (refusal,) = found.refused
    problem = "not connected with nodes that do not have it with VNI 5: other (VNI 9)"
    assert (refusal.reason, refusal.message) == ("other-vni", f"network default-domain:k8s-blue:aa: {problem}")


def test_pods_of_the_right_number_are_connected_beside_one_of_another() -> None:
    old, new = interface_in(BLUE, 1, vni=4), interface_in(BLUE, 2, vni=5)
    found = computed(NODE, [make_pod(old), make_pod(new)], make_slice(NODE, 5, old, new))
    assert [(network.vni, [port.mac for port in network.ports]) for network in found.state.networks] == [(5, [new.mac])]
    assert [(refusal.reason, refusal.vni) for refusal in found.refused] == [("other-vni", 4)]
