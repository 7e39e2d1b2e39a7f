"""The follower with the real agent and real namespaces."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_api.datapath.kind import Datapath
from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.node_reconciler import STALE_SECONDS, NodeReconciler
from cni_contrail.errors import Code, PluginError
from cni_contrail.follower.desired_state import read_desired_state
from cni_contrail.follower.follower import Follower
from cni_contrail.follower.kernel_program import KernelProgram
from cni_contrail.log import Log
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.support.fake_clock import FakeClock
from tests.support.node_networks import NodeNetworks
from tests.support.served_agent import ServedAgent, port_of, serve_agent
from tests.support.virtual_machines import left_interface, make_virtual_machine, pod_interface

_SEND = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
    wire.bind((sys.argv[1], 0))
    for _ in range(3):
        wire.send(bytes.fromhex("00005e000100 02000000ff01 88b5") + bytes(46))
"""
VNI = 4_000_017
LINK = "tapfollowed"
DAY = 86400.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def reconciler(networks: NodeNetworks, clock: FakeClock) -> NodeReconciler:
    return NodeReconciler(networks.namespaces, clock=clock)


@pytest.fixture
def follower(served: ServedAgent, reconciler: NodeReconciler) -> Follower:
    return Follower(Endpoint(str(served.socket), "", 0), reconciler, Log(), audit_interval=0.05)


@pytest.fixture
def virtual_machine() -> VirtualMachine:
    uid = "d8b4a3f0-1d1c-4f0a-9d54-0d2f6f4a1c11"
    left = left_interface(uid, 1)
    subnet = msgspec.structs.replace(left.addresses[0], gateway="10.1.1.1", subnet_gateway="10.1.1.1")
    left = msgspec.structs.replace(left, vni=VNI, addresses=(subnet,))
    return make_virtual_machine(uid=uid, interfaces=(pod_interface(uid), left))


async def test_a_network_is_made_before_its_first_port(
    store: SqliteStore, follower: Follower, networks: NodeNetworks, virtual_machine: VirtualMachine
) -> None:
    await store.put_virtual_machine(virtual_machine)
    await _follow_until(follower, lambda: networks.namespaces.existing() == {VNI})
    assert "10.1.1.1/24" in networks.run(VNI, "ip", "address", "show", "dev", "br0")


async def test_a_plugged_port_is_connected_and_drift_is_repaired(
    served: ServedAgent, store: SqliteStore, follower: Follower, networks: NodeNetworks, virtual_machine: VirtualMachine
) -> None:
    await store.put_virtual_machine(virtual_machine)
    await _follow_until(follower, lambda: networks.namespaces.existing() == {VNI})
    networks.run(VNI, "ip", "link", "add", LINK, "type", "veth", "peer", "name", "other")
    left = virtual_machine.interfaces[1]
    async with served.unix.post("/vm", json=port_of(virtual_machine.uuid, left.uuid, host_ifname=LINK)) as answer:
        assert answer.status == 200
    await _follow_until(follower, lambda: left.mac in networks.run(VNI, "ip", "neighbour", "show", "dev", "br0"))
    assert LINK in networks.run(VNI, "ip", "link", "show", "master", "br0")
    networks.run(VNI, "ip", "neighbour", "flush", "dev", "br0", "nud", "permanent")
    await _follow_until(follower, lambda: left.mac in networks.run(VNI, "ip", "neighbour", "show", "dev", "br0"))
    reported = await _reported(served)
    assert reported["repaired"] > 0
    assert reported["problems"] == {}


async def test_a_port_without_its_link_is_reported(
    served: ServedAgent, store: SqliteStore, follower: Follower, networks: NodeNetworks, virtual_machine: VirtualMachine
) -> None:
    await store.put_virtual_machine(virtual_machine)
    left = virtual_machine.interfaces[1]
    async with served.unix.post("/vm", json=port_of(virtual_machine.uuid, left.uuid, host_ifname=LINK)) as answer:
        assert answer.status == 200
    await _follow_until(follower, lambda: networks.namespaces.existing() == {VNI})
    assert (await _reported(served))["missing"] == {str(VNI): [LINK]}


async def test_dropped_packets_move_the_agents_counter(
    served: ServedAgent, store: SqliteStore, follower: Follower, networks: NodeNetworks, virtual_machine: VirtualMachine
) -> None:
    no_drops = {"spoofing": 0, "broadcast": 0, "tunnel": 0, "mtu": 0, "ports": {}}
    await store.put_virtual_machine(virtual_machine)
    await _follow_until(follower, lambda: networks.namespaces.existing() == {VNI})
    assert (await _reported(served))["drops"][str(VNI)] == no_drops
    networks.run(VNI, "ip", "link", "add", LINK, "type", "veth", "peer", "name", "other")
    networks.run(VNI, "ip", "link", "set", LINK, "up", "master", "br0")
    networks.run(VNI, "ip", "link", "set", "other", "up")
    networks.run(VNI, "python3", "-c", _SEND, "other")  # from a port that is not connected
    await asyncio.to_thread(follower.follow_once)
    drops = (await _reported(served))["drops"][str(VNI)]
    assert drops == {**no_drops, "spoofing": 3, "ports": {LINK: 3}}
    assert await _metric(served, 'contrail_agent_datapath_drops_total{reason="spoofing"}') == 3
    networks.run(VNI, "nft", "flush", "ruleset")
    for _ in range(2):
        await asyncio.to_thread(follower.follow_once)
    assert (await _reported(served))["drops"][str(VNI)] == no_drops
    assert await _metric(served, 'contrail_agent_datapath_drops_total{reason="spoofing"}') == 3


async def test_without_a_linux_datapath_nothing_is_programmed(
    store: SqliteStore, tmp_path: Path, reconciler: NodeReconciler, networks: NodeNetworks,
    virtual_machine: VirtualMachine,
) -> None:  # fmt: skip
    await store.put_virtual_machine(virtual_machine)
    async with serve_agent(store, tmp_path) as other:
        follower = Follower(Endpoint(str(other.socket), "", 0), reconciler, Log(), audit_interval=0.05)
        assert await asyncio.to_thread(follower.follow_once) > 0
    assert networks.namespaces.existing() == set()


async def test_without_an_agent_the_last_state_is_still_audited(
    store: SqliteStore, tmp_path: Path, reconciler: NodeReconciler, networks: NodeNetworks,
    virtual_machine: VirtualMachine,
) -> None:  # fmt: skip
    await store.put_virtual_machine(virtual_machine)
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        follower = Follower(Endpoint(str(served.socket), "", 0), reconciler, Log(), audit_interval=0.05)
        await _follow_until(follower, lambda: networks.namespaces.existing() == {VNI})
    networks.run(VNI, "ip", "link", "delete", "br0")
    assert await asyncio.to_thread(follower.follow_once) > 0
    assert "10.1.1.1/24" in networks.run(VNI, "ip", "address", "show", "dev", "br0")


async def test_an_agent_that_was_restarted_gets_a_report_at_once(
    store: SqliteStore, tmp_path: Path, reconciler: NodeReconciler, virtual_machine: VirtualMachine
) -> None:
    await store.put_virtual_machine(virtual_machine)
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        follower = Follower(Endpoint(str(served.socket), "", 0), reconciler, Log(), audit_interval=DAY)
        await _follow_until(follower, lambda: _has_report(served))
    await asyncio.to_thread(follower.follow_once)  # finds that the agent is gone
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as restarted:
        await _follow_until(follower, lambda: _has_report(restarted))


async def test_an_agent_that_is_away_for_long_is_found_at_once_when_it_is_back(
    store: SqliteStore, tmp_path: Path, reconciler: NodeReconciler, virtual_machine: VirtualMachine
) -> None:
    """Pods that start meanwhile wait for the first report to the new agent."""
    await store.put_virtual_machine(virtual_machine)
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        follower = Follower(Endpoint(str(served.socket), "", 0), reconciler, Log(), audit_interval=DAY)
        await _follow_until(follower, lambda: _has_report(served))
    pauses = [await asyncio.to_thread(follower.follow_once) for _ in range(20)]
    assert max(pauses) <= 0.5


async def test_while_the_agent_is_away_audits_are_rarer_than_requests(
    store: SqliteStore, tmp_path: Path, reconciler: NodeReconciler, networks: NodeNetworks,
    virtual_machine: VirtualMachine,
) -> None:  # fmt: skip
    await store.put_virtual_machine(virtual_machine)
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        follower = Follower(Endpoint(str(served.socket), "", 0), reconciler, Log(), audit_interval=DAY)
        await _follow_until(follower, lambda: networks.namespaces.existing() == {VNI})
    for repaired in (True, False, False):
        networks.run(VNI, "ip", "address", "flush", "dev", "br0")
        await asyncio.to_thread(follower.follow_once)
        assert ("10.1.1.1/24" in networks.run(VNI, "ip", "address", "show", "dev", "br0")) is repaired


async def test_what_a_network_has_towards_the_outside_is_read(
    served: ServedAgent, store: SqliteStore, virtual_machine: VirtualMachine
) -> None:
    first, left = virtual_machine.interfaces
    known: dict[str, str] = {}
    for snat, forwarding in ((False, False), (True, False), (False, True)):
        changed = msgspec.structs.replace(left, ip_fabric_snat=snat, ip_fabric_forwarding=forwarding)
        await store.put_virtual_machine(msgspec.structs.replace(virtual_machine, interfaces=(first, changed)))
        found: list[tuple[bool, bool]] = []
        async with asyncio.timeout(10):
            while found != [(snat, forwarding)]:
                async with served.unix.get("/datapath", params={"wait": "5", **known}) as answer:
                    if answer.status == 503:  # virtual machines are not listed yet
                        continue
                    state = read_desired_state(await answer.read())
                known, found = {"version": state.version}, [(each.snat, each.forwarding) for each in state.networks]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{}", b'{"version":1,"networks":[]}', b'{"version":"a","networks":{}}',
        b'{"version":"a","networks":[{"vni":5,"mtu":1500,"gateways":[],"ports":[],"snat":1,"forwarding":false}]}',
        b'{"version":"a","networks":[{"vni":5,"mtu":1500,"gateways":[],"ports":[],"snat":false}]}',
        b'{"version":"a","networks":[{"vni":0,"mtu":1500,"gateways":[],"ports":[],"snat":false,"forwarding":false}]}',
        b'{"version":"a","networks":[{"vni":true,"mtu":1500,"gateways":[],"ports":[],"snat":false,"forwarding":false}]}',
        b'{"version":"a","networks":[{"vni":5,"mtu":1500,"gateways":["10.0.0.1"],"ports":[],"snat":false,"forwarding":false}]}',
        (b'{"version":"a","networks":[{"vni":5,"mtu":1500,"gateways":[],"ports":[{"link":"a%d","mac":"02:00:00:00:00:01"'
        b',"addresses":[]}],"snat":false,"forwarding":false}]}'),
        (b'{"version":"a","networks":[{"vni":5,"mtu":1500,"gateways":[],"ports":[{"link":"tap","mac":"02",'
        b'"addresses":[]}],"snat":false,"forwarding":false}]}'),
        (b'{"version":"a","networks":[{"vni":5,"mtu":1500,"gateways":[],"ports":[{"link":"tap",'
        b'"mac":"02:00:00:00:00:01","addresses":["10.0.0.256"]}],"snat":false,"forwarding":false}]}'),
    ],
)  # fmt: skip
def test_a_malformed_desired_state_is_one_error(body: bytes) -> None:
    with pytest.raises(PluginError, match="desired state of the datapath") as raised:
        read_desired_state(body)
    assert raised.value.code == Code.BAD_AGENT_RESPONSE


async def test_a_network_goes_when_its_last_virtual_machine_has_gone(
    store: SqliteStore,
    follower: Follower,
    networks: NodeNetworks,
    virtual_machine: VirtualMachine,
    clock: FakeClock,
    reconciler: NodeReconciler,
) -> None:
    await store.put_virtual_machine(virtual_machine)
    await _follow_until(follower, lambda: networks.namespaces.existing() == {VNI})
    await store.delete_virtual_machine(virtual_machine.uuid)
    await _follow_until(follower, lambda: reconciler.has_stale)
    assert networks.namespaces.existing() == {VNI}
    clock.advance(STALE_SECONDS)
    await _follow_until(follower, lambda: networks.namespaces.existing() == set())


def _has_report(served: ServedAgent) -> bool:
    assert served.agent.datapath is not None
    return served.agent.datapath.reports.latest is not None


async def _reported(served: ServedAgent) -> Any:
    async with served.unix.get("/datapath/report") as answer:
        return (await answer.json())["report"]


async def _metric(served: ServedAgent, sample: str) -> float:
    async with served.unix.get("/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return float(next(line for line in lines if line.startswith(sample)).rpartition(" ")[2])


async def test_counters_of_ports_are_reported_and_not_with_each_report(
    served: ServedAgent,
    store: SqliteStore,
    networks: NodeNetworks,
    virtual_machine: VirtualMachine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()
    program = KernelProgram(
        Endpoint(str(served.socket), "", 0), "test", NodeReconciler(networks.namespaces), Log(), clock=clock
    )
    await store.put_virtual_machine(virtual_machine)
    left = virtual_machine.interfaces[1]
    async with served.unix.post("/vm", json=port_of(virtual_machine.uuid, left.uuid, host_ifname=LINK)) as answer:
        assert answer.status == 200
    async with served.unix.get("/datapath", params={"wait": "5"}) as answer:
        desired = read_desired_state(await answer.read())
    program.program(desired)
    networks.run(VNI, "ip", "link", "add", LINK, "type", "veth", "peer", "name", "other")

    async def reported() -> Any:
        await asyncio.to_thread(program.report)
        async with served.unix.get("/datapath/report") as answer:
            return (await answer.json())["counters"]

    assert await reported() == {str(VNI): {LINK: [0, 0, 0, 0]}}
    networks.run(VNI, "ip", "link", "delete", LINK)
    assert await reported() == {str(VNI): {LINK: [0, 0, 0, 0]}}  # not read again
    clock.advance(30)
    refused = "cni_contrail.follower.kernel_program.send_report"
    with monkeypatch.context() as patch:
        patch.setattr(refused, _unreachable)
        with pytest.raises(PluginError):
            program.report()
    assert await reported() == {}  # with the first report that arrives


def _unreachable(*_arguments: object) -> None:
    raise PluginError(Code.TRY_AGAIN, "no agent")


async def _follow_until(follower: Follower, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.to_thread(follower.follow_once)
