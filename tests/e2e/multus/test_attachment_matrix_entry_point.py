"""Part of the attachment matrix with the Python entry point; the shim's daemon runs the same code."""

import pytest

from tests.e2e.interfaces import interfaces
from tests.e2e.multus import leftovers
from tests.e2e.multus.attachment_matrix import ROWS, MatrixRow
from tests.e2e.multus.attachments import assert_attached, check_attachment, our_interfaces
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.node_kinds import THICK_AND_ENTRY_POINT, THIN_AND_ENTRY_POINT, only_on

SOME = ("two namespaces", "foreign in the middle", "default-route")


@only_on(THIN_AND_ENTRY_POINT, THICK_AND_ENTRY_POINT)
@pytest.mark.parametrize("row", [row for row in ROWS if row.name in SOME], ids=lambda row: row.name)
def test_pods_are_attached_checked_and_detached(kubelet: Kubelet, cluster: Cluster, row: MatrixRow) -> None:
    sandbox = kubelet.sandbox(row.networks, **row.settings)
    sandbox.add().succeeded()
    assert_attached(cluster, sandbox, row)
    for name in our_interfaces(row):
        check_attachment(sandbox, name).succeeded()
    sandbox.delete().succeeded()
    assert interfaces(sandbox.ip) == {}
    assert leftovers.of_sandbox(sandbox) == []
