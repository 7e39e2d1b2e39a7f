"""Backoff: delays that double, are capped and jittered, and are never shorter than the server asks for."""

from statistics import pstdev

from contrail_config.kube.backoff import MAX_RETRY_AFTER, Backoff


def test_delays_double_up_to_the_cap() -> None:
    backoff = Backoff(first=0.8, longest=30.0)
    bounds = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    pauses = [backoff.next_pause() for _ in bounds]
    assert all(bound / 2 <= pause <= bound for pause, bound in zip(pauses, bounds, strict=True))


def test_delays_never_exceed_the_cap() -> None:
    backoff = Backoff(first=0.8, longest=30.0)
    assert max(backoff.next_pause() for _ in range(5000)) <= 30.0


def test_delays_start_over_after_a_reset() -> None:
    backoff = Backoff(first=1.0, longest=30.0)
    for _ in range(5):
        backoff.next_pause()
    backoff.reset()
    assert backoff.next_pause() <= 1.0


def test_delays_are_jittered() -> None:
    pauses = [Backoff(first=10.0, longest=10.0).next_pause() for _ in range(200)]
    assert pstdev(pauses) > 0.5


def test_retry_after_is_a_minimum() -> None:
    assert 7.0 <= Backoff(first=0.8, longest=30.0).next_pause(retry_after=7.0) <= 7.7


def test_a_longer_delay_than_retry_after_stays() -> None:
    backoff = Backoff(first=8.0, longest=8.0)
    assert backoff.next_pause(retry_after=1.0) >= 4.0


def test_retry_after_is_capped() -> None:
    assert Backoff(first=0.8, longest=30.0).next_pause(retry_after=86_400.0) <= MAX_RETRY_AFTER * 1.1
