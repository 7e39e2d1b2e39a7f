"""NADs written for the Contrail CNI plugin work unchanged."""

import json
from typing import Any

import pytest

from tests.e2e.interfaces import interfaces
from tests.e2e.multus import leftovers
from tests.e2e.multus.attachment_matrix import MatrixRow
from tests.e2e.multus.attachments import allocated_interfaces, network_status, our_interfaces
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.node import NETWORK

PLUGIN = {"type": NETWORK}
FORMS: dict[str, dict[str, Any]] = {
    "as documented": {"cniVersion": "0.3.1", **PLUGIN},
    "with its name": {"cniVersion": "0.3.1", "name": "old", **PLUGIN},
    "with another name": {"cniVersion": "0.3.1", "name": "k8s-net", **PLUGIN},
    "with an empty name": {"cniVersion": "0.3.1", "name": "", **PLUGIN},
    "with the name of the default network": {"cniVersion": "0.3.1", "name": NETWORK, **PLUGIN},
    "as a list": {"cniVersion": "0.3.1", "plugins": [PLUGIN]},
    "as a list with another name": {"cniVersion": "0.4.0", "name": "k8s-net", "plugins": [PLUGIN]},
    "of the first lists": {"cniVersion": "0.3.0", "name": "k8s-net", "plugins": [PLUGIN]},
}
WITHOUT_VERSION = {"without a version": PLUGIN, "of version 0.2.0": {"cniVersion": "0.2.0", **PLUGIN}}
NUMBERS = {name: number for number, name in enumerate({**FORMS, **WITHOUT_VERSION})}


@pytest.fixture(scope="session")
def defined(cluster: Cluster) -> None:
    for name, form in {**FORMS, **WITHOUT_VERSION}.items():
        namespace = namespace_of(name)
        cluster.add_namespace(namespace)
        cluster.add_nad(f"{namespace}/old", json.dumps(form), cidr=f"10.2{NUMBERS[name]}.0.0/24")


def namespace_of(form: str) -> str:
    return f"form-{NUMBERS[form]}"


@pytest.mark.parametrize("form", [*FORMS, *WITHOUT_VERSION])
def test_contrail_nads_are_attached_and_detached(kubelet: Kubelet, cluster: Cluster, defined: None, form: str) -> None:
    nad = f"{namespace_of(form)}/old"
    sandbox = kubelet.sandbox("old,demo/bridge,old", namespace=namespace_of(form))
    sandbox.add().succeeded()
    kernel = interfaces(sandbox.ip)
    row = MatrixRow("", "", {"net1": nad, "net2": "demo/bridge", "net3": nad})
    assert list(kernel) == list(row.everything)
    assert {name: kernel[name] for name in our_interfaces(row)} == allocated_interfaces(cluster, sandbox, row)
    assert [(network, name) for network, name, *_ in network_status(cluster, sandbox)] == [
        (network, name)
        for name, network in row.everything.items()
        if form in FORMS or network != nad  # results before 0.3.0 have no interfaces, so Multus writes no status
    ]
    sandbox.delete().succeeded()
    assert interfaces(sandbox.ip) == {}
    assert leftovers.of_sandbox(sandbox) == []
