"""Rate limits of events: of all together, and of each namespace."""

import pytest

from contrail_service.token_bucket import TokenBucket
from manager.kubernetes.event_rate_limits import QUIET_BURST, EventRateLimits
from tests.support.fake_clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def admitted(limits: EventRateLimits, namespace: str, *, of: int) -> int:
    return sum(limits.exceeded_by(namespace) is None for _ in range(of))


def test_a_namespace_has_a_burst_and_then_its_rate(clock: FakeClock) -> None:
    limits = EventRateLimits(rate=2, burst=3, clock=clock)
    assert admitted(limits, "a", of=9) == 3
    clock.advance(1)
    assert admitted(limits, "a", of=9) == 2
    assert limits.exceeded_by("a") == "more than 2 events per second in namespace a"


def test_a_namespace_above_its_limit_takes_nothing_from_others(clock: FakeClock) -> None:
    limits = EventRateLimits(total=TokenBucket(rate=1, burst=5, clock=clock), rate=1, burst=3, clock=clock)
    assert admitted(limits, "noisy", of=1000) == 3
    assert admitted(limits, "quiet", of=2) == 2


def test_all_namespaces_together_are_limited(clock: FakeClock) -> None:
    limits = EventRateLimits(total=TokenBucket(rate=1, burst=9, clock=clock), rate=1, burst=100, clock=clock)
    assert admitted(limits, "a", of=50) == 9
    assert admitted(limits, "b", of=50) == QUIET_BURST // 2
    assert limits.exceeded_by("b") == "more than 1 events per second"


@pytest.mark.parametrize("noisy", [6, 50])
@pytest.mark.parametrize("rate", [9, 100])
def test_a_tenant_with_many_namespaces_does_not_suppress_the_events_of_a_quiet_one(
    clock: FakeClock, noisy: int, rate: int
) -> None:
    limits = EventRateLimits(clock=clock)
    for _ in range(120):
        clock.advance(1)
        for name in range(noisy):
            admitted(limits, f"noisy-{name}", of=rate)
        assert limits.exceeded_by("quiet") is None
