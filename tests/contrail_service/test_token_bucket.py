"""Token bucket: a rate limit that permits bursts."""

from contrail_service.token_bucket import TokenBucket
from tests.support.fake_clock import FakeClock


def test_a_burst_is_permitted_then_the_rate_applies() -> None:
    clock = FakeClock()
    bucket = TokenBucket(rate=2, burst=3, clock=clock)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    clock.advance(1)
    assert [bucket.take() for _ in range(3)] == [True, True, False]


def test_tokens_are_saved_up_to_the_burst() -> None:
    clock = FakeClock()
    bucket = TokenBucket(rate=2, burst=3, clock=clock)
    clock.advance(60)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]


def test_reserved_tokens_may_be_those_of_the_future() -> None:
    clock = FakeClock()
    bucket = TokenBucket(rate=2, burst=3, clock=clock)
    assert [bucket.reserve(2) for _ in range(3)] == [0.0, 0.5, 1.5]
    clock.advance(1.5)
    assert not bucket.take()
    assert bucket.reserve(4) == 2.0
