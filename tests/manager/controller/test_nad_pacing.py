"""Pacing of NADs: only those with long lists are delayed, and only those of their namespace."""

import pytest

from manager.controller.nad_pacing import BURST, FREE_ITEMS, RATE, NadPacing
from manager.source import Nad
from tests.support.fake_clock import FakeClock
from tests.support.pods import make_nad


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pacing(clock: FakeClock) -> NadPacing:
    return NadPacing(clock=clock)


def long_nad(items: int, *, namespace: str = "flood") -> Nad:
    return make_nad("long", namespace=namespace, cidr=",".join(["10.1.0.0/24"] * (items + FREE_ITEMS + 1)), config="")


def test_nads_without_long_lists_are_not_delayed(pacing: NadPacing) -> None:
    plain = make_nad("plain", cidr=",".join(["10.1.0.0/24"] * 32))
    assert [pacing.delay(plain) for _ in range(1000)] == [0.0] * 1000


def test_long_lists_have_a_burst_and_then_a_rate(pacing: NadPacing, clock: FakeClock) -> None:
    half = long_nad(int(BURST / 2))
    assert [pacing.delay(half) for _ in range(3)] == [0.0, 0.0, BURST / 2 / RATE]
    clock.advance(3 * BURST / RATE)
    assert pacing.delay(half) == 0.0


def test_other_namespaces_are_not_delayed(pacing: NadPacing) -> None:
    for _ in range(10):
        pacing.delay(long_nad(1000))
    assert pacing.delay(long_nad(1000, namespace="shop")) == 0.0
