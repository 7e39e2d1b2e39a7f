"""What `contrailctl check connectivity` finds in the store: each fault, and nothing else."""

from datetime import datetime, timedelta

import msgspec
import pytest

from contrail_config.addressing.notation import parse_address
from contrail_config.kubernetes.blocks import AddressEntry, Block, BlockKey, Hold, PoolKey
from contrail_config.kubernetes.expected_slices import StoredObjects, expected_slices
from contrail_config.kubernetes.node_owner import node_owner
from contrail_config.objects import Endpoint, NetworkSlice, PodNetwork, Refusal, VirtualNetwork
from contrailctl.check.store import store_findings
from tests.support.virtual_networks import new_owner

BLUE = "default-domain:k8s-default:blue"


def found(stored: StoredObjects, now: datetime) -> list[tuple[str, str, str, str, str]]:
    """Returns node, network, fault, object and state; each finding says what to do."""
    findings = store_findings(stored, now=now)
    assert all(each.advice for each in findings)
    return [(each.node, each.network, each.fault, each.what, each.found) for each in findings]


def name_of(stored: StoredObjects, node: str) -> str:
    return next(name for name, item in stored.slices.items() if item.node == node)


def with_slice(stored: StoredObjects, node: str, **fields: object) -> StoredObjects:
    """Edits the slice of a node."""
    name = name_of(stored, node)
    edited: NetworkSlice = msgspec.structs.replace(stored.slices[name], **fields)
    return stored._replace(slices={**stored.slices, name: edited})


def as_they_should_be(stored: StoredObjects) -> StoredObjects:
    """Writes the slices again, as the manager does."""
    return stored._replace(slices=expected_slices(stored))


def test_nothing_is_found_in_a_store_that_is_as_it_should_be(stored: StoredObjects, now: datetime) -> None:
    assert len(stored.slices) == 2
    assert found(stored, now) == []


def test_a_missing_slice(stored: StoredObjects, now: datetime) -> None:
    name = name_of(stored, "node-b")
    rest = {key: item for key, item in stored.slices.items() if key != name}
    assert found(stored._replace(slices=rest), now) == [("node-b", BLUE, "missing", "slice", "")]


def test_no_slices_at_all_are_one_finding(stored: StoredObjects, now: datetime) -> None:
    assert found(stored._replace(slices={}), now) == [("", "", "missing", "slices of all networks", "")]


def test_a_cluster_of_one_node_needs_no_slices(stored: StoredObjects, now: datetime) -> None:
    alone = stored._replace(virtual_machines=stored.virtual_machines[:1], slices={})
    assert found(alone, now) == []


def test_a_stale_slice(stored: StoredObjects, now: datetime) -> None:
    left = stored._replace(virtual_machines=stored.virtual_machines[:1])
    assert found(left, now) == [("node-b", BLUE, "stale", "slice", "")]


def test_an_invalid_slice(stored: StoredObjects, now: datetime) -> None:
    name = name_of(stored, "node-b")
    rest = {key: item for key, item in stored.slices.items() if key != name}
    invalid = stored._replace(slices=rest, invalid_slices={name: "vni: too large"})
    assert found(invalid, now) == [("node-b", BLUE, "wrong", f"slice {name}", "vni: too large")]


def test_missing_stale_and_wrong_endpoints(stored: StoredObjects, now: datetime) -> None:
    wrong = with_slice(stored, "node-a", endpoints=(Endpoint("02:00:00:00:00:03", ("10.1.0.9",)).text,))
    what = "endpoint in the slice: 02:00:00:00:00:03 10.1.0.3"
    assert found(wrong, now) == [("node-a", BLUE, "wrong", what, "10.1.0.9")]
    other = with_slice(stored, "node-a", endpoints=(Endpoint("02:00:00:00:00:99", ("10.1.0.3",)).text,))
    assert found(other, now) == [
        ("node-a", BLUE, "missing", what, ""),
        ("node-a", BLUE, "stale", "endpoint in the slice: 02:00:00:00:00:99 10.1.0.3", ""),
    ]


@pytest.mark.parametrize(
    ("fields", "what", "actual"),
    [
        ({"tunnel": ("192.0.2.9",)}, "slice: tunnel addresses 192.0.2.1", "192.0.2.9"),
        ({"tunnel": ()}, "slice: tunnel addresses 192.0.2.1", "none"),
        ({"vni": 8}, "slice: VNI 7", "8"),
    ],
)
def test_wrong_fields_of_a_slice(
    stored: StoredObjects, now: datetime, fields: dict[str, object], what: str, actual: str
) -> None:
    assert found(with_slice(stored, "node-a", **fields), now) == [("node-a", BLUE, "wrong", what, actual)]


def test_a_node_without_tunnel_address(stored: StoredObjects, now: datetime) -> None:
    bare = stored._replace(tunnels={**stored.tunnels, "node-b": ()})
    assert found(bare, now) == [
        ("node-b", "", "missing", "tunnel address of the node", ""),
        ("node-b", BLUE, "wrong", "slice: tunnel addresses", "192.0.2.2"),
    ]


def test_nodes_with_one_tunnel_address(stored: StoredObjects, now: datetime) -> None:
    both = ("198.51.100.7", "2001:db8::1")
    alike = as_they_should_be(stored._replace(tunnels={"node-a": both, "node-b": ("198.51.100.7", "2001:db8::2")}))
    what = "tunnel address 198.51.100.7 of the node"
    assert found(alike, now) == [
        ("node-a", "", "wrong", what, "also that of node-b"),
        ("node-b", "", "wrong", what, "also that of node-a"),
    ]


def test_a_tunnel_address_of_a_node_without_agent_does_not_count(stored: StoredObjects, now: datetime) -> None:
    other = stored._replace(tunnels={**stored.tunnels, "control-plane": stored.tunnels["node-a"]})
    assert found(as_they_should_be(other), now) == []


def test_a_tunnel_address_in_the_pod_network(stored: StoredObjects, now: datetime) -> None:
    within = as_they_should_be(stored._replace(tunnels={**stored.tunnels, "node-b": ("10.1.0.200",)}))
    assert found(within, now) == []  # addresses of a network in a namespace of its own may be those of nodes
    pods = with_fields(within, 0, pod_network=PodNetwork.CLUSTER)
    expected = ("node-b", "", "wrong", "tunnel address 10.1.0.200 of the node", f"in 10.1.0.0/24 of {BLUE}")
    assert found(pods, now) == [expected]


def test_a_node_that_is_gone_but_has_pods(stored: StoredObjects, now: datetime) -> None:
    gone = stored._replace(tunnels={"node-a": ("192.0.2.1",)})
    assert ("node-b", "", "missing", "object of the node", "") in found(gone, now)


def test_agents_that_do_not_report(stored: StoredObjects, now: datetime) -> None:
    without = stored._replace(reports={"node-a": stored.reports["node-a"]})
    assert found(without, now) == [("node-b", "", "missing", "report of the agent (ContrailNode)", "")]
    what = "agent: no report for more than 15 minutes"
    old = [(node, "", "silent", what, "2026-01-01T00:00:00Z") for node in ("node-a", "node-b")]
    assert found(stored, now + timedelta(minutes=11)) == old


def test_a_time_without_a_zone_is_in_utc_and_another_text_is_none(stored: StoredObjects, now: datetime) -> None:
    report, later = stored.reports["node-a"], now + timedelta(minutes=11)
    texts = {"2026-01-01T00:00:00": True, "yesterday": False, "": False}
    for text, is_time in texts.items():
        status = msgspec.structs.replace(report.status, reported_at=text)
        odd = stored._replace(reports={**stored.reports, "node-a": msgspec.structs.replace(report, status=status)})
        assert found(odd, now) == []
        assert [each[0] for each in found(odd, later)] == (["node-a", "node-b"] if is_time else ["node-b"])


def with_tunnel_mtu(stored: StoredObjects, **mtus: int | None) -> StoredObjects:
    """Lets nodes report what fits their tunnels; `node_a` is node-a."""
    reports = dict(stored.reports)
    for name, mtu in mtus.items():
        report = reports[name.replace("_", "-")]
        status = msgspec.structs.replace(report.status, tunnel_mtu=mtu)
        reports[report.metadata.name] = msgspec.structs.replace(report, status=status)
    return stored._replace(reports=reports)


def with_mtu(stored: StoredObjects, position: int, mtu: int) -> StoredObjects:
    """Gives the pod at a position an MTU."""
    return with_fields(stored, position, mtu=mtu)


def with_fields(stored: StoredObjects, position: int, **fields: object) -> StoredObjects:
    """Edits the interface of the pod at a position."""
    machines = list(stored.virtual_machines)
    (interface,) = machines[position].interfaces
    changed = (msgspec.structs.replace(interface, **fields),)
    machines[position] = msgspec.structs.replace(machines[position], interfaces=changed)
    return stored._replace(virtual_machines=tuple(machines))


def test_pods_with_an_mtu_that_fits_the_tunnels_of_their_nodes(stored: StoredObjects, now: datetime) -> None:
    assert found(with_tunnel_mtu(stored, node_a=1500, node_b=None), now) == []


def test_nodes_whose_tunnels_take_less_than_the_packets_of_pods(stored: StoredObjects, now: datetime) -> None:
    narrow = with_tunnel_mtu(stored, node_a=1499, node_b=1500)
    what = f"packets of 1500 bytes, the MTU of pods in {BLUE}"
    assert found(narrow, now) == [("node-a", "", "lost", what, "tunnels of the node take 1499")]
    long = with_mtu(with_tunnel_mtu(stored, node_a=8950, node_b=1500), 0, 8950)
    what = f"packets of 8950 bytes, the MTU of pods in {BLUE}"
    assert found(long, now) == [("node-b", "", "lost", what, "tunnels of the node take 1500")]


def test_packets_of_a_network_on_one_node_need_no_tunnel(stored: StoredObjects, now: datetime) -> None:
    alone = stored._replace(virtual_machines=stored.virtual_machines[:1], slices={})
    assert found(with_tunnel_mtu(alone, node_a=1000), now) == []


def test_a_node_that_is_gone_is_not_missing_while_addresses_of_its_blocks_are_held(
    stored: StoredObjects, now: datetime
) -> None:
    key = BlockKey(PoolKey(new_owner(), 4), parse_address("10.3.0.0", family=4))
    own = AddressEntry(node_owner("node-c"), None)
    block = Block(key, entries={key.first + 2: own}, node="node-c")
    assert ("node-c", "", "missing", "object of the node", "") in found(stored._replace(blocks=(block,)), now)
    left = Block(key, entries={key.first + 2: msgspec.structs.replace(own, hold=Hold(0.0, 600.0))}, node="node-c")
    assert found(stored._replace(blocks=(left,)), now) == []


def test_refused_networks_of_a_node(stored: StoredObjects, now: datetime) -> None:
    report = stored.reports["node-a"]
    refusal = Refusal(("default-domain", "k8s-default", "blue"), 7, "EqualVni", "shares its VNI with red")
    status = msgspec.structs.replace(report.status, refused=(refusal,))
    reports = {**stored.reports, "node-a": msgspec.structs.replace(report, status=status)}
    assert found(stored._replace(reports=reports), now) == [("node-a", BLUE, "refused", "shares its VNI with red", "")]


def test_a_used_network_without_a_vni(stored: StoredObjects, now: datetime, blue: VirtualNetwork) -> None:
    without = stored._replace(networks=(msgspec.structs.replace(blue, vni=0),))
    assert ("", BLUE, "missing", "VNI of the network", "") in found(without, now)
