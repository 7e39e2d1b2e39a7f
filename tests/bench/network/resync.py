"""Resync of one network with many pods on other nodes: agent, daemon and a real API server, and the reconciler alone.

The slices are written as a manager would, by the benchmark. Each process is killed and started again; the time is from
the start of the new one until the agent serves everything to the daemon, or until the daemon has compared everything
with the kernel and has reported it. It includes the start of an interpreter.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from cni_contrail.agent.connections import idle_connections
from cni_contrail.datapath.desired import Network, RemoteEndpoint, Underlay
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.link.plan import Address
from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kubernetes.bucket_namespaces import create_in_bucket
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import (
    NETWORK_SLICES,
    VIRTUAL_MACHINES,
    network_slice_object,
    virtual_machine_object,
)
from contrail_config.objects import Endpoint, ForwardingMode, NetworkSlice, VirtualMachine
from tests.bench.built_apiserver import built_apiserver
from tests.e2e.across_nodes.node import MTU, Node
from tests.e2e.polling import wait_until
from tests.support.netns import Netns
from tests.support.node_fabric import cluster_of
from tests.support.real_apiserver.server import ApiServer
from tests.support.virtual_machines import LEFT_NETWORK, left_interface, make_virtual_machine, pod_interface

MUST_MS, AIM_MS = 1000, 300

_NODES = 50  # that have the pods
_ROUNDS = 3
_VNI = 9_200_101
_POD = "p1"
_BLOCKS = ("10.47.255.192/26",)
_UID = "aaaaaaaa-0000-4000-8000-000000000016"
_INDEX_0, _INTERFACE = pod_interface(_UID), left_interface(_UID, 1)


def measure_resync(endpoints: int) -> dict[str, Any]:
    """Measures with so many pods on other nodes."""
    return {f"{endpoints} endpoints": _reconciler(endpoints) | _processes(endpoints)}


def _reconciler(endpoints: int) -> dict[str, Any]:
    """Milliseconds of a reconciler that has to program everything, and of new ones that find it so."""
    with cluster_of(1, (0,)) as cluster:
        (node,) = cluster.nodes
        pods = enumerate(_pods(endpoints))
        remotes = tuple(RemoteEndpoint(mac, addresses, _tunnel(number)) for number, (mac, addresses) in pods)
        network = Network(_VNI, 1450, (Address("10.64.0.1", 14), Address("fd07::1", 64)), (), remotes=remotes)
        underlay = Underlay(node.addresses, 4789, network.nodes())

        def resync() -> int:
            outcome = NodeReconciler(node.networks.namespaces).reconcile([network], underlay=underlay)
            assert not outcome.problems, outcome.problems
            return outcome.changes[_VNI]

        with node.namespace.inside():
            first = _milliseconds(resync)
            assert resync() == 0
            again = [_milliseconds(resync) for _ in range(_ROUNDS)]
    return {
        "reconciler, nothing programmed yet": {"ms": first},
        "reconciler, nothing to change": {"ms": round(median(again), 1), "must": MUST_MS, "aim": AIM_MS},
    }


def _processes(endpoints: int) -> dict[str, Any]:
    """Milliseconds until everything is programmed and known to be, with agent, daemon and server."""
    with built_apiserver() as server, _node(server) as node:
        first = _milliseconds(lambda: _write_and_start(server, node, endpoints))
        agents = [_restarted_agent(node, endpoints) for _ in range(_ROUNDS)]
        daemons = [_milliseconds(lambda: _restart_daemon(node, endpoints)) for _ in range(_ROUNDS)]
        known = node.networks.run(_VNI, "ip", "-4", "neighbour", "show", "nud", "permanent").splitlines()
        assert len(known) >= endpoints, len(known)
    return {
        "slices written, all programmed": {"ms": first},
        "killed agent, until all is served again": {"ms": round(median(agents), 1), "must": MUST_MS, "aim": AIM_MS},
        "killed daemon, until all is compared again": {"ms": round(median(daemons), 1), "must": MUST_MS, "aim": AIM_MS},
    }


def _write_and_start(server: ApiServer, node: Node, endpoints: int) -> None:
    since = time.monotonic()
    node.start_daemon()
    asyncio.run(_write(server, node, endpoints))
    node.start_agent()
    _await_resync(node, endpoints, since)


def _restarted_agent(node: Node, endpoints: int) -> float:
    """The daemon goes on with the version that it has, if it is the one that the new agent computes.

    Returns milliseconds. Before the next kill the daemon has reported to this agent.
    """
    since = time.monotonic()
    node.agent.kill()
    node.start_agent()
    wait_until(lambda: _is_served(node, endpoints), what="served")
    served = time.monotonic()
    wait_until(lambda: node.is_programmed(since), what="programmed")
    return round((served - since) * 1000, 1)


def _restart_daemon(node: Node, endpoints: int) -> None:
    node.daemon.kill()
    since = time.monotonic()
    node.start_daemon()
    _await_resync(node, endpoints, since)


def _await_resync(node: Node, endpoints: int, since: float) -> None:
    """Waits until the agent serves all endpoints and the daemon has reported them."""
    wait_until(lambda: _is_served(node, endpoints) and node.is_programmed(since), what="programmed")


def _is_served(node: Node, endpoints: int) -> bool:
    served, incomplete = (node.metric(f"contrail_agent_datapath_{name}") for name in ("remotes", "incomplete"))
    return served >= endpoints and incomplete == 0


async def _write(server: ApiServer, node: Node, endpoints: int) -> None:
    """Writes the pod of the node, and the slices of other nodes."""
    async with connect(await load_client_config(kubeconfig=str(server.kubeconfig()))) as client:
        await create_in_bucket(client, VIRTUAL_MACHINES, virtual_machine_object(_virtual_machine(node.name)))
        for item in _slices(node, endpoints):
            await create_in_bucket(client, NETWORK_SLICES, network_slice_object(item))


def _virtual_machine(node: str) -> VirtualMachine:
    interfaces = (
        msgspec.structs.replace(_INDEX_0, vni=_VNI + 1, mtu=1450),
        msgspec.structs.replace(_INTERFACE, vni=_VNI, mtu=1450),
    )
    return make_virtual_machine(_POD, uid=_UID, interfaces=interfaces, node=node)


def _slices(node: Node, endpoints: int) -> Iterator[NetworkSlice]:
    """Yields the slices of the node's networks: its own, then those of other nodes."""
    identity, tunnel = _INTERFACE.network_uuid, node.addresses[:1]
    (address,) = (each.address for each in _INTERFACE.addresses)
    own = (Endpoint(_INTERFACE.mac, (address,)).text,)
    yield NetworkSlice(identity, node.name, LEFT_NETWORK, _VNI, tunnel=tunnel, endpoints=own)
    yield NetworkSlice(
        _INDEX_0.network_uuid, node.name, _INDEX_0.network, _VNI + 1, ForwardingMode.L3, tunnel, blocks=_BLOCKS
    )
    pods = [Endpoint(mac, addresses).text for mac, addresses in _pods(endpoints)]
    for at in range(_NODES):
        others = tuple(pods[at::_NODES])
        yield NetworkSlice(identity, f"other-{at}", LEFT_NETWORK, _VNI, tunnel=(_tunnel(at),), endpoints=others)


def _pods(count: int) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields MAC and addresses of pods on other nodes."""
    for number in range(256, 256 + count):
        mac = f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"
        yield mac, (f"10.64.{number >> 8}.{number & 255}", f"fd07::{number:x}")


def _tunnel(number: int) -> str:
    """The tunnel address of one of the nodes that have the pods."""
    return f"192.0.2.{100 + number % _NODES}"


@contextmanager
def _node(server: ApiServer) -> Iterator[Node]:
    """A node whose API server has the definitions that a manager creates; neither agent nor daemon runs."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ct-")))
        asyncio.run(_define(server))
        fabric = Netns("fabric")
        stack.callback(fabric.delete)
        fabric.ip("link", "add", "fabric", "mtu", str(MTU), "up", "type", "bridge", "mcast_snooping", "0")
        stack.callback(idle_connections.close)
        node = Node(1, server, fabric, folder)
        stack.callback(node.close)
        node.connect_to_server()
        yield node


async def _define(server: ApiServer) -> None:
    async with connect(await load_client_config(kubeconfig=str(server.kubeconfig()))) as client:
        await ensure_crds(client)
        await client.list_all(VIRTUAL_MACHINES)  # retried while the server initializes the storage of a new kind
        await client.list_all(NETWORK_SLICES)


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return round((time.perf_counter() - started) * 1000, 1)
