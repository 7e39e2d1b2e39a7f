"""The watch itself: many networks, notifications that are lost, and a process without the capability."""

import subprocess
import sys
from pathlib import Path

from cni_contrail.datapath.desired import Network
from cni_contrail.drift.drift_watch import DriftWatch
from tests.cni_contrail.drift.conftest import WatchedNode, settle


def test_one_of_500_networks_is_repaired_alone(node: WatchedNode) -> None:
    networks = [Network(10_000_000 + number, 1450, node.network().gateways, ()) for number in range(500)]
    node.desire(*networks)
    settle(node)
    first, last = networks[0].vni, networks[-1].vni
    node.run(first, "ip", "address", "flush", "dev", "br0")
    node.run(last, "nft", "flush", "ruleset")
    node.networks.namespaces.delete(networks[250].vni)
    node.await_repair(networks[250].vni)
    assert "gateway" in node.await_repair(first)
    assert "filter" in node.await_repair(last)
    assert len({line.split(":")[1] for line in node.log.lines}) == 3


def test_lost_notifications_cause_an_audit_of_everything(node: WatchedNode, network: Network) -> None:
    node.run(network.vni, "ip", "link", "add", "theirs", "type", "veth", "peer", "name", "ptheirs")
    node.watch(DriftWatch(receive_bytes=32768))
    node.desire(network)  # watched from here on by the new one
    flood(node, network)
    node.run(network.vni, "ip", "address", "flush", "dev", "br0")
    node.await_line("datapath: notifications of the kernel were lost")
    assert "10.7.0.1" in node.run(network.vni, "ip", "address")
    flood(node, network)
    node.program.repair()
    assert node.program.next_repair() is not None  # not again at once
    node.clock.advance(1)
    node.program.repair()
    settle(node)
    node.run(network.vni, "nft", "flush", "ruleset")  # it still receives
    assert "filter" in node.await_repair(network.vni)


def test_a_namespace_that_takes_the_place_of_another_is_watched(node: WatchedNode, network: Network) -> None:
    node.networks.namespaces.delete(network.vni)
    node.program.audit()  # makes the new one, perhaps before the end of the old one is notified
    settle(node)
    node.run(network.vni, "ip", "address", "flush", "dev", "br0")
    assert "gateway" in node.await_repair(network.vni)


def test_without_the_capability_there_is_one_error() -> None:
    script = "from cni_contrail.drift.drift_watch import DriftWatch; DriftWatch()"
    command = ["setpriv", "--bounding-set", "-net_broadcast", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert "KernelError: receive notifications of the kernel: Operation not permitted" in done.stderr


def test_nothing_stays_open(node: WatchedNode) -> None:
    before = descriptors()
    DriftWatch().close()
    assert descriptors() == before
    assert node.log.lines == []


def flood(node: WatchedNode, network: Network) -> None:
    """Causes more notifications than the buffer can hold, none of which concerns the network."""
    batch = node.networks.folder.parent / "batch"
    batch.write_text("".join(f"link set dev theirs mtu {mtu}\n" for mtu in range(1000, 1200)))
    node.run(network.vni, "ip", "-batch", str(batch))


def descriptors() -> int:
    """Number of open files of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))
