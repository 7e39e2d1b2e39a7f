"""Compares what the store says of each network and node: virtual machines, slices, tunnel addresses, reports. Pure."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from contrail_config.kubernetes.expected_slices import StoredObjects, expected_slices
from contrail_config.objects import NetworkSlice, VirtualMachineInterface, VirtualNetwork, parse_endpoint
from contrailctl.check.findings import Fault, Finding
from contrailctl.check.tunnel_addresses import tunnel_address_findings

_OLD = timedelta(minutes=15)
"""Age of a report whose agent is gone: it writes one every 5 minutes, and clocks differ."""

_MANAGER = "see whether the manager runs and leads: it writes the slice again; its log says what it could not write"
_NO_SLICES = "set network-slices in the manager's configuration: otherwise networks end at their node"
_NO_ADDRESS = "give the Node an InternalIP, or the annotation opencontrail.org/tunnel-addresses"
_NO_NODE = "remove the pods of the node that is gone, or let it register again"
_REFUSED = "change the network, or what it collides with, as the message says; see Troubleshooting, Events"
_NO_VNI = "see the events of the network's NAD: until it has a VNI its pods are not connected"
_TOO_LONG = "correct the MTU of the node's link; or lower that of the network and create its pods again; see Datapath"
_NO_REPORT = "see whether the agent runs on this node, and reaches the API server"


def store_findings(stored: StoredObjects, *, now: datetime) -> list[Finding]:
    """Returns what is wrong in the store; `now` has a time zone."""
    names = {network.uuid: network for network in stored.networks}
    return [
        *_node_findings(stored),
        *tunnel_address_findings(stored),
        *_report_findings(stored, now),
        *_mtu_findings(stored),
        *_network_findings(stored),
        *_slice_findings(stored, names),
    ]


def _node_findings(stored: StoredObjects) -> Iterator[Finding]:
    for node in sorted(stored.used_nodes):
        if node not in stored.tunnels:
            yield Finding(node, "", Fault.MISSING, "object of the node", advice=_NO_NODE)
        elif not stored.tunnels[node]:
            yield Finding(node, "", Fault.MISSING, "tunnel address of the node", advice=_NO_ADDRESS)
        if node not in stored.reports:
            yield Finding(node, "", Fault.MISSING, "report of the agent (ContrailNode)", advice=_NO_REPORT)


def _report_findings(stored: StoredObjects, now: datetime) -> Iterator[Finding]:
    for node, report in sorted(stored.reports.items()):
        for refusal in report.status.refused:
            yield Finding(node, ":".join(refusal.network), Fault.REFUSED, refusal.message, advice=_REFUSED)
        time = report.status.time
        if time is not None and now - time > _OLD:
            what = "agent: no report for more than 15 minutes"
            yield Finding(node, "", Fault.SILENT, what, report.status.reported_at, advice=_NO_REPORT)


def _mtu_findings(stored: StoredObjects) -> Iterator[Finding]:
    """Yields nodes whose tunnels take less than the longest packets of pods that they send or receive."""
    pods = defaultdict[str, list[VirtualMachineInterface]](list)
    nodes = defaultdict[str, set[str]](set)
    for virtual_machine in stored.virtual_machines:
        for interface in virtual_machine.interfaces:
            pods[interface.network_uuid].append(interface)
            nodes[interface.network_uuid].add(virtual_machine.node)
    across = [uuid for uuid, found in nodes.items() if len(found) > 1]
    longest = {uuid: max(pods[uuid], key=lambda each: each.mtu) for uuid in across}
    for node, report in sorted(stored.reports.items()):
        of_node = [interface for uuid, interface in longest.items() if node in nodes[uuid]]
        fitting = report.status.tunnel_mtu
        too_long = [each for each in of_node if fitting is not None and each.mtu > fitting]
        if too_long:
            interface = max(too_long, key=lambda each: (each.mtu, each.network))
            what = f"packets of {interface.mtu} bytes, the MTU of pods in {':'.join(interface.network)}"
            yield Finding(node, "", Fault.LOST, what, f"tunnels of the node take {fitting}", advice=_TOO_LONG)


def _network_findings(stored: StoredObjects) -> Iterator[Finding]:
    used = {interface.network_uuid for each in stored.virtual_machines for interface in each.interfaces}
    for network in stored.networks:
        if network.uuid in used and not network.vni:
            yield Finding("", ":".join(network.fq_name), Fault.MISSING, "VNI of the network", advice=_NO_VNI)


def _slice_findings(stored: StoredObjects, networks: dict[str, VirtualNetwork]) -> Iterator[Finding]:
    expected = expected_slices(stored)
    if expected and not stored.slices and not stored.invalid_slices:
        if len({each.node for each in expected.values()}) > 1:
            yield Finding("", "", Fault.MISSING, "slices of all networks", advice=_NO_SLICES)
        return
    for name, problem in sorted(stored.invalid_slices.items()):
        node = expected[name].node if name in expected else ""
        network = ":".join(expected[name].network) if name in expected else ""
        yield Finding(node, network, Fault.WRONG, f"slice {name}", problem, advice=_MANAGER)
    for name, wanted in sorted(expected.items()):
        found = stored.slices.get(name)
        if found is not None:
            yield from _differences(wanted, found)
        elif name not in stored.invalid_slices:
            yield Finding(wanted.node, ":".join(wanted.network), Fault.MISSING, "slice", advice=_MANAGER)
    for name, found in sorted(stored.slices.items()):
        if name not in expected:
            known = networks.get(found.network_uuid)
            network = ":".join(known.fq_name if known is not None else found.network)
            yield Finding(found.node, network, Fault.STALE, "slice", advice=_MANAGER)


def _differences(wanted: NetworkSlice, found: NetworkSlice) -> Iterator[Finding]:
    """Yields what is missing, stale or wrong in a slice."""
    node, network = wanted.node, ":".join(wanted.network)
    for text, expected, actual in _contents(wanted, found):
        for key, value in expected.items():
            if key not in actual:
                yield Finding(node, network, Fault.MISSING, f"{text} {_described(key, value)}", advice=_MANAGER)
            elif actual[key] != value:
                what = f"{text} {_described(key, value)}"
                yield Finding(node, network, Fault.WRONG, what, actual[key] or "none", advice=_MANAGER)
        for key in sorted(actual.keys() - expected.keys()):
            what = f"{text} {_described(key, actual[key])}"
            yield Finding(node, network, Fault.STALE, what, advice=_MANAGER)


def _contents(wanted: NetworkSlice, found: NetworkSlice) -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """Yields what both slices say, by key: MACs of endpoints, CIDRs and addresses, names of fields."""
    yield "endpoint in the slice:", _endpoints(wanted), _endpoints(found)
    yield "block in the slice:", dict.fromkeys(wanted.blocks, ""), dict.fromkeys(found.blocks, "")
    yield "borrowed address in the slice:", dict.fromkeys(wanted.borrowed, ""), dict.fromkeys(found.borrowed, "")
    yield "slice:", _fields(wanted), _fields(found)


def _endpoints(item: NetworkSlice) -> dict[str, str]:
    return {each.mac: ", ".join(each.addresses) for each in map(parse_endpoint, item.endpoints)}


def _fields(item: NetworkSlice) -> dict[str, str]:
    return {
        "VNI": str(item.vni),
        "forwarding mode": item.forwarding_mode,
        "tunnel addresses": ", ".join(item.tunnel),
        "addresses of the node": ", ".join(item.node_addresses),
    }


def _described(key: str, value: str) -> str:
    return f"{key} {value}".rstrip()
