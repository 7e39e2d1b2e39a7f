"""Attachment matrix: ADD, CHECK and DEL of each row under Multus thin and thick."""

import pytest

from tests.e2e.interfaces import interfaces
from tests.e2e.multus import leftovers
from tests.e2e.multus.attachment_matrix import ROWS, MatrixRow
from tests.e2e.multus.attachments import assert_attached, check_attachment, our_interfaces
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.runtime import Sandbox, run_concurrently

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


@each_row
def test_add(kubelet: Kubelet, cluster: Cluster, row: MatrixRow) -> None:
    sandbox = kubelet.sandbox(row.networks, **row.settings)
    assert cluster.network_status(sandbox.pod) == []  # Multus writes it, not the manager
    sandbox.add().succeeded()
    assert_attached(cluster, sandbox, row)


@each_row
def test_check(kubelet: Kubelet, cluster: Cluster, row: MatrixRow) -> None:
    sandbox = kubelet.sandbox(row.networks, **row.settings)
    sandbox.add().succeeded()
    sandbox.check().succeeded()
    for name in our_interfaces(row):
        check_attachment(sandbox, name).succeeded()
    assert_attached(cluster, sandbox, row)
    for name in our_interfaces(row):
        sandbox.ip("addr", "flush", "dev", name, "scope", "global")
        assert name in check_attachment(sandbox, name).failed()


@each_row
def test_del(kubelet: Kubelet, row: MatrixRow) -> None:
    sandbox = kubelet.sandbox(row.networks, **row.settings)
    sandbox.add().succeeded()
    sandbox.delete().succeeded()
    assert interfaces(sandbox.ip) == {}
    assert leftovers.of_sandbox(sandbox) == []


@each_row
def test_del_twice(kubelet: Kubelet, cluster: Cluster, row: MatrixRow) -> None:
    sandbox, another = (kubelet.sandbox(row.networks, **row.settings) for _ in range(2))
    run_concurrently(Sandbox.add, [sandbox, another])
    sandbox.delete().succeeded()
    sandbox.delete().succeeded()
    sandbox.remove()
    sandbox.delete().succeeded()
    assert leftovers.of_sandbox(sandbox) == []
    assert_attached(cluster, another, row)


@each_row
def test_a_failure_of_the_last_attachment_rolls_back_the_others(kubelet: Kubelet, row: MatrixRow) -> None:
    sandbox = kubelet.sandbox(row.and_then("broken"), **row.settings)
    assert "broken on purpose" in sandbox.add().failed()
    assert interfaces(sandbox.ip) == {}
    assert leftovers.of_this_plugin(sandbox) == []
    sandbox.delete().succeeded()
    assert leftovers.of_sandbox(sandbox) == []
