"""Pending index: waiting pods by dependency."""

from manager.controller.pending_index import PendingIndex
from manager.dependencies import nad_dependency

NET_A, NET_B = nad_dependency("blue/net-a"), nad_dependency("blue/net-b")


def test_waiting_pods_are_found_by_dependency_in_order() -> None:
    pending = PendingIndex()
    pending.wait("p2", [NET_A, NET_B])
    pending.wait("p1", [NET_A])
    assert pending.waiting_for(NET_A) == ["p2", "p1"]
    assert pending.waiting_for(NET_B) == ["p2"]


def test_a_pod_that_waits_again_replaces_its_dependencies() -> None:
    pending = PendingIndex()
    pending.wait("p1", [NET_A])
    pending.wait("p1", [NET_B])
    assert pending.waiting_for(NET_A) == []
    pending.wait("p1", [])
    assert pending.waiting_for(NET_B) == []


def test_nothing_is_kept_of_a_pod_that_left() -> None:
    pending = PendingIndex()
    pending.wait("p1", [NET_A])
    pending.leave("p1")
    pending.leave("p1")
    assert (pending._waiting, pending._dependencies) == ({}, {})
