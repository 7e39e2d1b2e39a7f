"""Whether a sandbox is attached as its pod shall be: by the kernel, by the store, and by what Multus says of it."""

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
    """Each attachment has its own interface in its place, those of ours what the store allots them."""
    kernel = interfaces(sandbox.ip)
    shall, is_ = allocated_interfaces(cluster, sandbox, row), {name: kernel.get(name) for name in our_interfaces(row)}
    assert list(kernel) == list(row.everything), list(kernel)
    assert is_ == shall, (is_, shall)
    assert (gateways := default_gateways(sandbox.ip)) == row.gateways, gateways
    assert (status := network_status(cluster, sandbox)) == [
        (network, name, kernel[name].mac, plain(kernel[name]), name == "eth0")
        for name, network in row.everything.items()
    ], status


def our_interfaces(row: MatrixRow) -> list[str]:
    """Names of those that we make."""
    return [name for name, network in row.everything.items() if network not in FOREIGN]


def allocated_interfaces(cluster: Cluster, sandbox: Sandbox, row: MatrixRow) -> dict[str, Interface]:
    """What the store allots to our interfaces, index by index in the order of the pod's list."""
    listed = cluster.allocated(sandbox.pod)
    if row.default in FOREIGN:
        del listed[0]  # which nobody attaches
    named = dict(zip(our_interfaces(row), listed, strict=True))
    assert [each.nad for each in named.values()] == [
        None if network == NETWORK else network for name, network in row.everything.items() if name in named
    ]
    return {name: as_interface(each) for name, each in named.items()}


def as_interface(interface: VirtualMachineInterface) -> Interface:
    """As the kernel shall have it."""
    addresses = frozenset(f"{each.address}/{each.prefix_length}" for each in interface.addresses)
    return Interface(interface.mac, interface.mtu, addresses)


def plain(interface: Interface) -> set[str]:
    """Its addresses alone."""
    return {address.partition("/")[0] for address in interface.addresses}


def network_status(cluster: Cluster, sandbox: Sandbox) -> list[tuple[str, str, str, set[str], bool]]:
    """Network, interface, MAC, addresses, and whether it is the default one, of all that the pod's status lists."""
    return [
        (each["name"], each["interface"], each["mac"], set(each["ips"]), each.get("default", False))
        for each in cluster.network_status(sandbox.pod)
    ]


def check_attachment(sandbox: Sandbox, ifname: str) -> Outcome:
    """CHECK of one of ours, as libcni would do it: Multus itself checks no attachments that annotations ask for."""
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
