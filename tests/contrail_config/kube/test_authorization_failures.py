"""Authorization failures: a right that is missing for a while is reported with the server's message."""

import asyncio

import pytest

from contrail_config.kube.authorization_failures import FORGOTTEN_AFTER, PERSISTENT_AFTER, AuthorizationFailures
from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import KubeForbiddenError
from manager.kubernetes.wire import PODS
from tests.support.fake_apiserver.server import serve_fake_apiserver
from tests.support.fast_event_loop import run_fast

LIST = 'User "system:serviceaccount:contrail:manager" cannot list resource "pods" in API group "" at the cluster scope'
CREATE = 'User "m" cannot create resource "virtualmachines" in API group "opencontrail.org" in the namespace "{}"'
ENDS = 'pods "web-0" is forbidden: unable to create new content in namespace blue because it is being terminated'
QUOTA = 'virtualmachines.opencontrail.org "web-0" is forbidden: exceeded quota: all, requested: 1, used: 9, limited: 9'


async def record(failures: AuthorizationFailures, *messages: str, every: float) -> None:
    """Records the messages, `every` seconds apart."""
    for message in messages:
        await asyncio.sleep(every)
        failures.record(message)


def test_a_single_failure_is_not_reported() -> None:
    async def play() -> None:
        failures = AuthorizationFailures()
        failures.record(f"pods is forbidden: {LIST}")
        await asyncio.sleep(2 * PERSISTENT_AFTER)
        assert failures.persistent() == []

    run_fast(play())


def test_many_failures_at_the_same_time_are_not_reported() -> None:
    async def play() -> None:
        failures = AuthorizationFailures()
        await record(failures, *[LIST] * 100, every=0.9 * PERSISTENT_AFTER / 100)
        assert failures.persistent() == []

    run_fast(play())


def test_a_repeated_failure_is_reported_with_the_servers_message() -> None:
    async def play() -> None:
        failures = AuthorizationFailures()
        await record(failures, *[f"pods is forbidden: {LIST}"] * 3, every=PERSISTENT_AFTER)
        assert failures.persistent() == [LIST]

    run_fast(play())


def test_the_longest_pause_between_two_attempts_expires_nothing() -> None:
    async def play() -> None:
        failures = AuthorizationFailures()
        for _ in range(5):
            await record(failures, LIST, LIST, every=30.0)
            assert failures.persistent() == [LIST]

    run_fast(play())


def test_a_failure_that_is_not_repeated_expires() -> None:
    async def play() -> None:
        failures = AuthorizationFailures()
        await record(failures, LIST, LIST, every=PERSISTENT_AFTER)
        await asyncio.sleep(FORGOTTEN_AFTER)
        assert failures.persistent() == []
        failures.record(LIST)
        assert failures.persistent() == []

    run_fast(play())


def test_a_right_is_the_same_in_all_namespaces() -> None:
    async def play() -> None:
        failures = AuthorizationFailures()
        await record(failures, CREATE.format("blue"), CREATE.format("red"), every=PERSISTENT_AFTER)
        assert failures.persistent() == [CREATE.format("red")]

    run_fast(play())


def test_different_rights_are_reported_separately() -> None:
    async def play() -> None:
        failures = AuthorizationFailures()
        await record(failures, *[LIST, CREATE.format("blue")] * 2, every=PERSISTENT_AFTER)
        assert failures.persistent() == [LIST, CREATE.format("blue")]

    run_fast(play())


@pytest.mark.parametrize("message", [ENDS, QUOTA, ""])
def test_a_403_because_of_the_object_is_not_reported(message: str) -> None:
    async def play() -> None:
        failures = AuthorizationFailures()
        await record(failures, *[message] * 5, every=PERSISTENT_AFTER)
        assert failures.persistent() == []

    run_fast(play())


async def _ask(client: KubeClient, *, watch: bool) -> None:
    if watch:
        async with client.watch(PODS, since="1", seconds=300.0):
            return
    await client.list_all(PODS)


@pytest.mark.parametrize("watch", [False, True], ids=["list", "watch"])
def test_a_client_records_its_failures(watch: bool) -> None:
    async def play() -> None:
        async with serve_fake_apiserver() as server, connect(ClientConfig(server.url)) as client:
            server.faults.reject(403, times=2, message=LIST)
            for _ in range(2):
                assert client.authorization_failures() == []
                with pytest.raises(KubeForbiddenError, match="cannot list"):
                    await _ask(client, watch=watch)
                await asyncio.sleep(PERSISTENT_AFTER)
            assert client.authorization_failures() == [LIST]

    run_fast(play())
