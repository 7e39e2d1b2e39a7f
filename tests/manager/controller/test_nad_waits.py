"""Pods that wait for the NADs that they name to be reconciled."""

import pytest

from manager.controller.nad_waits import NadWaits


@pytest.fixture
def requeued() -> list[str]:
    return []


@pytest.fixture
def waits(requeued: list[str]) -> NadWaits:
    return NadWaits(requeued.append)


def test_a_pod_without_queued_nads_does_not_wait(waits: NadWaits) -> None:
    assert not waits.must_wait("a/web", list)
    assert len(waits) == 0


def test_a_pod_is_requeued_once_all_its_nads_are_reconciled(waits: NadWaits, requeued: list[str]) -> None:
    assert waits.must_wait("a/web", lambda: ["a/one", "a/two"])
    waits.reconciled("a/one")
    assert requeued == []
    waits.reconciled("a/one")
    waits.reconciled("b/other")
    assert requeued == []
    waits.reconciled("a/two")
    assert requeued == ["a/web"]
    assert len(waits) == 0


def test_a_pod_that_waited_does_not_wait_again(waits: NadWaits, requeued: list[str]) -> None:
    assert waits.must_wait("a/web", lambda: ["a/one"])
    waits.reconciled("a/one")
    assert not waits.must_wait("a/web", lambda: ["a/one"])
    assert requeued == ["a/web"]


def test_a_pod_that_is_queued_for_another_reason_waits_for_what_it_names_now(
    waits: NadWaits, requeued: list[str]
) -> None:
    assert waits.must_wait("a/web", lambda: ["a/one"])
    assert waits.must_wait("a/web", lambda: ["a/two"])
    waits.reconciled("a/one")
    assert requeued == []
    waits.reconciled("a/two")
    assert requeued == ["a/web"]


def test_a_pod_that_left_is_not_requeued(waits: NadWaits, requeued: list[str]) -> None:
    assert waits.must_wait("a/web", lambda: ["a/one"])
    waits.leave("a/web")
    waits.leave("a/web")
    waits.reconciled("a/one")
    assert requeued == []
    assert len(waits) == 0


def test_pods_are_requeued_in_the_order_in_which_they_came(waits: NadWaits, requeued: list[str]) -> None:
    for name in ("c", "a", "b"):
        assert waits.must_wait(name, lambda: ["a/one"])
    waits.reconciled("a/one")
    assert requeued == ["c", "a", "b"]
