"""Retries on conflict: conflicts are retried a limited number of times, any other error ends the series."""

import asyncio

import pytest
from tenacity import TryAgain

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds slept between attempts, without sleeping."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return pauses


async def count_attempts(*errors: Exception | None) -> int:
    """Returns the number of attempts, each of which raises the next of `errors`; None succeeds."""
    scripted = iter(errors)
    attempts = 0
    async for attempt in retry_on_conflict("network a"):
        with attempt:
            attempts += 1
            error = next(scripted)
            if error is not None:
                raise error
    return attempts


async def test_a_success_is_a_single_attempt(pauses: list[float]) -> None:
    assert await count_attempts(None) == 1
    assert pauses == []


@pytest.mark.parametrize("error", [KubeConflictError("409"), TryAgain()])
async def test_a_conflict_is_retried(error: Exception, pauses: list[float]) -> None:
    assert await count_attempts(error, error, None) == 3
    assert [0.0025 <= pauses[0] <= 0.005, 0.005 <= pauses[1] <= 0.01] == [True, True]


async def test_another_error_ends_the_series(pauses: list[float]) -> None:
    with pytest.raises(KubeNotFoundError, match="404"):
        await count_attempts(KubeConflictError("409"), KubeNotFoundError("404"))
    assert len(pauses) == 1


async def test_other_conflicts_can_be_named() -> None:
    attempts = 0
    async for attempt in retry_on_conflict("network a", KubeConflictError, KubeExistsError):
        with attempt:
            attempts += 1
            if attempts < 3:
                raise KubeExistsError("409")
    assert attempts == 3


async def test_the_last_conflict_is_part_of_the_error(pauses: list[float]) -> None:
    message = "^network a: changed by other writers in each of 12 attempts: PUT a: 409 Conflict$"
    with pytest.raises(StoreUnavailableError, match=message) as raised:
        await count_attempts(*[KubeConflictError("PUT a: 409 Conflict")] * 12)
    assert isinstance(raised.value.__cause__, KubeConflictError)
    assert len(pauses) == 11
    assert all(0.25 <= pause <= 0.5 for pause in pauses[7:])


async def test_an_error_without_text_is_not_part_of_the_error() -> None:
    with pytest.raises(StoreUnavailableError, match=r"^network a: changed by other writers in each of 12 attempts$"):
        await count_attempts(*[TryAgain()] * 12)
