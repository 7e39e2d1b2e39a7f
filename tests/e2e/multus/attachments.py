"""Checks of a sandbox's attachments in the kernel, in the store and in the network status written by Multus."""

import base64
import json
from typing import Any

from contrail_config.objects import VirtualMachineInterface
from tests.e2e.interfaces import Interface, default_gateways, interfaces
from tests.e2e.multus.attachment_matrix import MatrixRow
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.networks import FOREIGN
from tests.e2e.multus.runtime import Outcome, Sandbox, call
from tests.e2e.node import NETWORK

_RESULTS = "/var/lib/cni/multus/results"


def assert_attached(cluster: Cluster, sandbox: Sandbox, row: MatrixRow) -> None:
    """Checks that each attachment has its interface, and that this plugin's interfaces match the store."""
    kernel = interfaces(sandbox.ip)
    expected, actual = (
        allocated_interfaces(cluster, sandbox, row),
        {name: kernel.get(name) for name in our_interfaces(row)},
    )
    assert list(kernel) == list(row.everything), list(kernel)
    assert actual == expected, (actual, expected)
    assert (gateways := default_gateways(sandbox.ip)) == row.gateways, gateways
    assert (status := network_status(cluster, sandbox)) == [
        (network, name, kernel[name].mac, plain(kernel[name]), name == "eth0")
        for name, network in row.everything.items()
    ], status


def our_interfaces(row: MatrixRow) -> list[str]:
    """Names of the interfaces that this plugin creates."""
    return [name for name, network in row.everything.items() if network not in FOREIGN]


def allocated_interfaces(cluster: Cluster, sandbox: Sandbox, row: MatrixRow) -> dict[str, Interface]:
    """The store's data of this plugin's interfaces, in the order of the pod's networks."""
    listed = cluster.allocated(sandbox.pod)
    if row.default in FOREIGN:
        del listed[0]  # the foreign default network replaces it
    named = dict(zip(our_interfaces(row), listed, strict=True))
    assert [each.nad for each in named.values()] == [
        None if network == NETWORK else network for name, network in row.everything.items() if name in named
    ]
    return {name: as_interface(each) for name, each in named.items()}


def as_interface(interface: VirtualMachineInterface) -> Interface:
    """The interface as the kernel must have it."""
    addresses = frozenset(f"{each.address}/{each.prefix_length}" for each in interface.addresses)
    return Interface(interface.mac, interface.mtu, addresses)


def plain(interface: Interface) -> set[str]:
    """Its addresses without prefix lengths."""
    return {address.partition("/")[0] for address in interface.addresses}


def network_status(cluster: Cluster, sandbox: Sandbox) -> list[tuple[str, str, str, set[str], bool]]:
    """Network, interface, MAC, addresses and default flag of each item in the pod's network status."""
    return [
        (each["name"], each["interface"], each["mac"], set(each["ips"]), each.get("default", False))
        for each in cluster.network_status(sandbox.pod)
    ]


def check_attachment(sandbox: Sandbox, ifname: str) -> Outcome:
    """CHECK of one attachment as libcni would call it; Multus checks no attachments requested by annotations."""
    cached = _cached(sandbox, ifname)
    configuration: dict[str, Any] = json.loads(base64.b64decode(cached["config"]))
    own = next((each for each in configuration.get("plugins", []) if each["type"] == NETWORK), configuration)
    result = cached["result"]
    named = {"name": configuration["name"], "cniVersion": result["cniVersion"], "prevResult": result}
    return call(sandbox.node, sandbox.variables("CHECK", ifname), {**own, **named})


def _cached(sandbox: Sandbox, ifname: str) -> Any:
    folder = sandbox.node.host.path(_RESULTS)
    (file,) = folder.glob(f"*-{sandbox.container}-{ifname}")
    return json.loads(file.read_text())
