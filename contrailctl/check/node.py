"""`contrailctl check node`: compares the kernel of this node with its desired state, and probes the way to others.

The kernel and the desired state change while they are read. So what is found counts only if it is still there at a
second look; what is stale, at a third one, after the time that it may stay.
"""

import argparse
import os
import socket
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from cni_contrail.daemon.configuration import load_daemon_configuration
from cni_contrail.daemon.errors import DaemonConfigurationError
from cni_contrail.datapath.desired import Network, RoutedNetwork
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.node_reconciler import STALE_SECONDS
from cni_contrail.errors import PluginError
from cni_contrail.follower.desired_state import DesiredState
from cni_contrail.inspection.difference import STALE, Difference
from cni_contrail.inspection.node_inspection import inspect_node
from cni_contrail.inspection.path_probe import Passage, ProbesNotPermittedError, Way, probe
from cni_contrail.link.errors import LinkError
from cni_contrail.node_file import NODE_FILE, NODE_FILE_VARIABLE
from cni_contrail.settings import Settings, node_settings
from contrailctl.check.findings import Checked, Fault, Finding, output_of
from contrailctl.check.node_agent import INDEX_0_NAME, NodeDatapath, read_datapath
from contrailctl.check.tunnel_damage import stops_packets
from contrailctl.errors import NotPermittedError, UsageError
from contrailctl.output import Output
from contrailctl.waiting import shown_while

AGENT_TIMEOUT = 10.0
_SECOND_LOOK = 1.0  # seconds after the first one
_THIRD_LOOK = STALE_SECONDS + 2.0
_PROBE_SECONDS = 20.0

_REPAIRED = "contrail-cnid repairs this at once, or within 30 s; if it comes back, its log names the program behind it"
_NOT_REPAIRED = "start contrail-cnid on this node: it repairs this"
_HOST_END = "the host end of a pod cannot be made again: delete the pod"
_PROBLEM = "the log of contrail-cnid on this node has more; see Troubleshooting, Datapath problems"
_REFUSED = "change the network, or what it collides with, as the message says; see Troubleshooting, Events"
_NARROW = "raise the MTU of the underlay on the way to that node, or lower the MTU of the networks"
_SILENT = "see whether the node runs, and whether ICMP and UDP to the tunnels' port pass between the nodes"
_BLOCKED = "let UDP to the tunnels' port pass between the nodes; see whether contrail-cnid runs on both"
_DAEMON = "start contrail-cnid: until then nothing is connected or repaired, and what is connected stays so"

Inspect = Callable[[DesiredState], list[Difference]]


def check_node(arguments: argparse.Namespace) -> Output:
    """Checks the node on which it runs, as root. Raises ContrailctlError."""
    if os.geteuid() != 0:
        raise NotPermittedError("check node: must run as root, on the node")
    settings = _settings(arguments.config)
    timeout = arguments.timeout or AGENT_TIMEOUT
    namespaces = Namespaces(settings.netns_dir)

    def inspect(desired: DesiredState) -> list[Difference]:
        return inspect_node(
            desired.networks,
            desired.routed,
            desired.underlay,
            desired.fabric_subnets,
            namespaces=namespaces,
            sysctl_dir=settings.sysctl_dir,
        )

    node = arguments.node_name or socket.gethostname()
    with shown_while(f"comparing {node} with its desired state"):
        datapath, differences = confirmed(lambda: read_datapath(settings.agent_socket, timeout=timeout), inspect)
    findings = [*_reported(node, datapath), *_differences(node, datapath, differences)]
    notes: list[str] = []
    if arguments.probes:
        ways = _ways(datapath.desired) + ways_through_tunnels(datapath.desired, differences)
        try:
            with shown_while("sending packets to other nodes"):
                passages = probe(ways, timeout=_PROBE_SECONDS)
        except ProbesNotPermittedError as error:
            notes.append(f"{node}: packets to other nodes: {error}")
        except LinkError as error:
            findings.append(Finding(node, "", Fault.WRONG, str(error), advice=_SILENT))
        else:
            findings += findings_of(node, passages)
            notes += [f"{node}: {len(ways) - len(passages)} other nodes"] if len(passages) < len(ways) else []
    return output_of(Checked((node,), len(datapath.desired.networks), tuple(sorted(findings)), tuple(notes)))


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def confirmed(
    read: Callable[[], NodeDatapath], inspect: Inspect, *, pause: Callable[[float], object] = _pause
) -> tuple[NodeDatapath, list[Difference]]:
    """Returns the state that was read last, and the differences that stay."""
    datapath = read()
    found = inspect(datapath.desired)
    for seconds, is_due in ((_SECOND_LOOK, bool), (_THIRD_LOOK, _has_stale)):
        if is_due(found):
            pause(seconds)
            datapath = read()
            again = set(inspect(datapath.desired))
            found = [each for each in found if each in again]
    return datapath, found


def _has_stale(found: Iterable[Difference]) -> bool:
    return any(each.fault == STALE for each in found)


def _settings(config: str | None) -> Settings:
    """Returns settings that name the agent's Unix socket: the desired state is served there only."""
    try:
        overrides = {} if config is None else load_daemon_configuration(config).settings
        settings = node_settings(os.environ, overrides)
    except DaemonConfigurationError as error:
        raise UsageError(f"--config: {error}") from error
    except PluginError as error:
        raise UsageError(error.message) from error
    if not settings.agent_socket:
        file = config or os.environ.get(NODE_FILE_VARIABLE) or NODE_FILE
        raise UsageError(f"check node: agent-socket is not set in {file}; name contrail-cnid's file by --config")
    return settings


def _reported(node: str, datapath: NodeDatapath) -> Iterator[Finding]:
    """Yields what the agent knows: refused networks, a daemon that does not run, and problems that it reports."""
    status = datapath.status
    for refusal in status.refused:
        yield Finding(node, ":".join(refusal.network), Fault.REFUSED, refusal.message, advice=_REFUSED)
    if not _is_programmed(datapath):
        yield Finding(node, "", Fault.STOPPED, "nothing programs the datapath", status.silence or "", advice=_DAEMON)
        return  # its last report is not about this moment
    for vni, problem in (status.report.problems if status.report else {}).items():
        yield Finding(node, datapath.name_of(vni), Fault.PROBLEM, problem, advice=_PROBLEM)


def _is_programmed(datapath: NodeDatapath) -> bool:
    return datapath.status.follower is not None and datapath.status.silence is None


def _differences(node: str, datapath: NodeDatapath, found: Iterable[Difference]) -> Iterator[Finding]:
    advice = _REPAIRED if _is_programmed(datapath) else _NOT_REPAIRED
    for vni, fault, what, actual in found:
        is_host_end = fault == Fault.MISSING and what.startswith("host end")
        yield Finding(
            node, datapath.name_of(vni), Fault(fault), what, actual, advice=_HOST_END if is_host_end else advice
        )


def _ways(desired: DesiredState) -> list[Way]:
    """Returns the ways to all nodes that have something of a network here, for the longest packets of these."""
    longest: dict[str, int] = {}
    networks: list[Network | RoutedNetwork] = [*desired.networks]
    networks += [desired.underlay.routed] if desired.underlay.routed is not None else []
    for network in networks:
        for peer in network.nodes():
            longest[peer] = max(longest.get(peer, 0), network.longest_packet)
    ways = ((desired.underlay.local(peer), peer, mtu) for peer, mtu in sorted(longest.items()))
    return [Way(local, peer, mtu) for local, peer, mtu in ways if local is not None]


def ways_through_tunnels(desired: DesiredState, differences: Collection[Difference] = ()) -> list[Way]:
    """Returns a way through the tunnel to each node that has an address of its own at index 0, as this one has.

    Those that cannot work, by what was found in this kernel, are left out.
    """
    routed = desired.underlay.routed
    if routed is None or not routed.is_complete:
        return []
    own = {":" in address: address for address in routed.addresses}
    found: dict[str, Way] = {}
    for address, tunnel in routed.node_addresses:
        local = own.get(":" in address)
        if local is not None and desired.underlay.local(tunnel) is not None and not _is_damaged(tunnel, differences):
            found.setdefault(tunnel, Way(local, address, routed.mtu, tunnel))
    return list(found.values())


def _is_damaged(tunnel: str, differences: Iterable[Difference]) -> bool:
    return any(each.vni == INDEX_0 and stops_packets(each.fault, each.what, (tunnel,)) for each in differences)


def findings_of(node: str, passages: Mapping[Way, Passage]) -> Iterator[Finding]:
    """What is lost between the tunnels' addresses is lost in the tunnel, too, and said once."""
    narrow = {way.peer for way, passage in passages.items() if not way.tunnel and passage is not Passage.EVERYTHING}
    for way, passage in passages.items():
        if passage is Passage.EVERYTHING or way.tunnel in narrow:
            continue
        if way.tunnel:
            what = f"packets of {way.length} bytes through the tunnel to node {way.tunnel}"
            found = "short packets arrive" if passage is Passage.SHORT_PACKETS else ""
            yield Finding(node, INDEX_0_NAME, Fault.BLOCKED, what, found, advice=_BLOCKED, peer=way.tunnel)
        elif passage is Passage.SHORT_PACKETS:
            what = f"packets of {way.length} bytes to node {way.peer}, of pods with MTU {way.mtu}"
            yield Finding(node, "", Fault.LOST, what, "short packets arrive", advice=_NARROW, peer=way.peer)
        else:
            what = f"node {way.peer} does not answer echo requests from {way.local}"
            yield Finding(node, "", Fault.SILENT, what, advice=_SILENT, peer=way.peer)
