"""Events are where `kubectl describe` finds them, and equal events are counted."""

import asyncio
from typing import Any

import msgspec
import pytest

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.objects import Event, EventType
from manager.events import about_pod
from manager.kubernetes.event_log import KubernetesEventLog
from manager.kubernetes.event_rate_limits import EventRateLimits
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.kinds import BUILT_IN, NAMESPACES
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.pods import make_pod

EVENTS = next(kind for kind in BUILT_IN if kind.plural == "events")
THEN = 1_700_000_000.0
TOO_MANY = "rate limit of type Warning: more than 2 events per second in namespace default"


@pytest.fixture
def event_log(client: KubeClient, objects: ClusterObjects) -> KubernetesEventLog:
    objects.add_namespace("green")
    return KubernetesEventLog(client, instance="node-1")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def bounded(client: KubeClient, clock: FakeClock) -> KubernetesEventLog:
    """Writes three events of each type and namespace, and two more per second."""
    rate_limits = {kind: EventRateLimits(rate=2, burst=3, clock=clock) for kind in EventType}
    return KubernetesEventLog(client, instance="", rate_limits=rate_limits)


async def test_an_event_has_the_fields_that_kubectl_shows(event_log: KubernetesEventLog, server: FakeApiServer) -> None:
    await event_log.record_event(event())
    (kept,) = kept_events(server)
    assert kept["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "blue",
        "name": "web-0",
        "uid": "0e5f1bb4-7a41-4d8e-b0d5-9c1c3f2a6d94",
    }
    assert (kept["type"], kept["reason"], kept["message"]) == ("Warning", "NetworkNotFound", "net-a not found")
    assert (kept["firstTimestamp"], kept["lastTimestamp"], kept["count"]) == (
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:20Z",
        1,
    )
    assert kept["source"] == {"component": "contrail-manager"}
    assert (kept["reportingComponent"], kept["reportingInstance"]) == ("contrail-manager", "node-1")
    assert kept["metadata"]["namespace"] == "blue"
    assert kept["metadata"]["name"].startswith("web-0.")


async def test_an_event_on_a_nad_names_its_api_group(event_log: KubernetesEventLog, server: FakeApiServer) -> None:
    await event_log.record_event(event(kind="NetworkAttachmentDefinition"))
    (kept,) = kept_events(server)
    assert kept["involvedObject"]["apiVersion"] == "k8s.cni.cncf.io/v1"


async def test_an_event_on_a_namespace_is_in_the_default_namespace(
    event_log: KubernetesEventLog, server: FakeApiServer
) -> None:
    await event_log.record_event(event(kind="Namespace", namespace="", name="blue"))
    (kept,) = kept_events(server)
    assert kept["metadata"]["namespace"] == "default"
    assert "namespace" not in kept["involvedObject"]


def test_events_on_a_static_pod_have_its_hash_as_uid() -> None:
    assert about_pod(make_pod(config_hash="5d41402abc4b")).uid == "5d41402abc4b"
    assert about_pod(make_pod()).uid == make_pod().uid


async def test_equal_events_are_counted(event_log: KubernetesEventLog, server: FakeApiServer) -> None:
    for seconds in (0, 10, 20):
        kept = await event_log.record_event(event(seen=THEN + seconds))
    await event_log.record_event(event(message="net-b not found", seen=THEN + 30))
    await event_log.record_event(event(uid="another", seen=THEN + 40))
    first, second, third = await event_log.events()
    assert first == kept
    assert (first.count, first.first_seen, first.last_seen) == (3, THEN, THEN + 20)
    assert (second.message, second.count) == ("net-b not found", 1)
    assert (third.uid, third.count) == ("another", 1)
    assert server.requests.count("create events") == 3
    assert server.requests.count("patch events") == 2


async def test_concurrent_equal_events_are_counted(event_log: KubernetesEventLog) -> None:
    await asyncio.gather(*(event_log.record_event(event()) for _ in range(20)))
    (kept,) = await event_log.events()
    assert kept.count == 20


async def test_the_next_manager_continues_the_count(event_log: KubernetesEventLog, client: KubeClient) -> None:
    await event_log.record_event(event())
    await KubernetesEventLog(client, instance="node-2").record_event(event(seen=THEN + 60))
    (kept,) = await event_log.events()
    assert (kept.count, kept.first_seen, kept.last_seen) == (2, THEN, THEN + 60)


async def test_an_expired_event_is_created_again_with_the_whole_count(
    event_log: KubernetesEventLog, server: FakeApiServer
) -> None:
    await event_log.record_event(event())
    for kept in list(server.storage.objects(EVENTS).values()):
        server.storage.remove(EVENTS, kept)
    await event_log.record_event(event(seen=THEN + 7200))
    (again,) = await event_log.events()
    assert (again.count, again.first_seen, again.last_seen) == (2, THEN, THEN + 7200)


async def test_events_can_be_selected_by_object(event_log: KubernetesEventLog) -> None:
    recorded = [event(), event(name="web-1", seen=THEN - 5), event(namespace="green"), event(kind="Namespace")]
    for one in recorded:
        await event_log.record_event(one)
    assert set(await event_log.events()) == set(recorded)
    assert await event_log.events(namespace="green") == [recorded[2]]
    assert await event_log.events(namespace="blue", kind="Pod") == [recorded[1], recorded[0]]
    assert await event_log.events(namespace="blue", kind="Pod", name="web-1") == [recorded[1]]
    assert await event_log.events(name="nobody") == []


async def test_events_are_listed_in_pages_of_which_each_is_read_once(
    event_log: KubernetesEventLog, server: FakeApiServer
) -> None:
    recorded = [event(name=f"web-{number}") for number in range(5)]
    for one in recorded:
        await event_log.record_event(one)
    page = await event_log.event_page(namespace=None, limit=2, token=None)
    pages = [page]
    while page.following is not None:
        page = await event_log.event_page(namespace=None, limit=2, token=page.following)
        pages.append(page)
    assert [len(page.events) for page in pages] == [2, 2, 1]
    assert {one for page in pages for one in page.events} == set(recorded)
    assert server.requests.count("list events") == 3
    with pytest.raises(StoreUnavailableError):
        await event_log.event_page(namespace=None, limit=2, token="x")


async def test_events_of_other_components_are_not_listed(event_log: KubernetesEventLog, server: FakeApiServer) -> None:
    body = {"metadata": {"name": "of-others", "namespace": "blue"}, "reportingComponent": "kubelet", "eventTime": None}
    server.storage.put(EVENTS, body)
    assert await event_log.events() == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"lastTimestamp": None}, "Expected `datetime`, got `null` - at `$.lastTimestamp`"),
        ({"type": "Fancy"}, "Invalid enum value 'Fancy' - at `$.type`"),
    ],
)
async def test_undecodable_events_in_its_name_are_skipped_and_logged_once(
    event_log: KubernetesEventLog,
    server: FakeApiServer,
    caplog: pytest.LogCaptureFixture,
    wrong: dict[str, Any],
    problem: str,
) -> None:
    await event_log.record_event(event())
    (own,) = kept_events(server)
    server.storage.put(EVENTS, {**own, **wrong, "metadata": {"name": "forged", "namespace": "blue", "uid": "forged"}})
    for _ in range(2):
        assert await event_log.events() == [event()]
    assert await event_log.events(namespace="blue", name="web-0") == [event()]
    (line,) = [line for line in caplog.messages if ": skipped: " in line]
    assert line == f"event blue/forged: skipped: {problem}"


async def test_the_number_of_logged_undecodable_events_is_bounded(
    event_log: KubernetesEventLog,
    server: FakeApiServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("manager.kubernetes.event_log._CACHE_SIZE", 2)
    for number in range(4):
        server.put(EVENTS, f"forged-{number}", namespace="blue", reportingComponent="contrail-manager")
    for _ in range(2):
        assert await event_log.events() == []
    assert len([line for line in caplog.messages if ": skipped: " in line]) == 2


async def test_an_object_with_the_longest_name_has_events(event_log: KubernetesEventLog, server: FakeApiServer) -> None:
    name = "a" * 236 + "." + "b" * 16
    await event_log.record_event(event(name=name))
    (kept,) = kept_events(server)
    assert kept["involvedObject"]["name"] == name
    assert len(kept["metadata"]["name"]) <= 253
    assert ".." not in kept["metadata"]["name"]


async def test_a_failed_write_is_an_error_that_names_the_object(
    event_log: KubernetesEventLog, server: FakeApiServer
) -> None:
    with pytest.raises(StoreUnavailableError, match=r"event NetworkNotFound on gone/web-0: POST .* not found"):
        await event_log.record_event(event(namespace="gone"))
    server.faults.reject(403, verb="list", times=1)
    with pytest.raises(StoreUnavailableError, match=r"cannot list events: .*403"):
        await event_log.events()


async def test_events_above_the_rate_limit_are_dropped(
    bounded: KubernetesEventLog, server: FakeApiServer, clock: FakeClock
) -> None:
    assert await record_all(bounded, 5) == [None, None, None, TOO_MANY, TOO_MANY]
    clock.advance(1)
    assert await record_all(bounded, 3) == [None, None, TOO_MANY]
    assert server.requests.count("create events") + server.requests.count("patch events") == 5


async def test_normal_events_do_not_use_up_the_rate_of_warnings(bounded: KubernetesEventLog) -> None:
    outcomes = await record_all(bounded, 9, kind=EventType.NORMAL)
    assert "rate limit of type Normal: more than 2 events per second in namespace default" in outcomes
    assert await record_all(bounded, 1) == [None]


async def test_events_of_one_namespace_do_not_use_up_the_rate_of_others(
    bounded: KubernetesEventLog, server: FakeApiServer
) -> None:
    server.put(NAMESPACES, "victim", namespace="")
    assert await record_all(bounded, 9) == [None] * 3 + [TOO_MANY] * 6
    await bounded.record_event(event(namespace="victim"))
    assert [kept["involvedObject"]["namespace"] for kept in kept_events(server)].count("victim") == 1


async def test_events_of_the_default_namespace_do_not_use_up_the_rate_of_objects_without_one(
    bounded: KubernetesEventLog, server: FakeApiServer
) -> None:
    assert await record_all(bounded, 9) == [None] * 3 + [TOO_MANY] * 6
    await bounded.record_event(msgspec.structs.replace(event(namespace=""), kind="VirtualNetwork"))
    assert [kept["involvedObject"]["kind"] for kept in kept_events(server)].count("VirtualNetwork") == 1


async def record_all(
    event_log: KubernetesEventLog, times: int, *, kind: EventType = EventType.WARNING
) -> list[str | None]:
    outcomes: list[str | None] = []
    for number in range(times):
        recorded = msgspec.structs.replace(event(namespace="default", message=str(number)), type=kind)
        try:
            await event_log.record_event(recorded)
            outcomes.append(None)
        except StoreUnavailableError as error:
            outcomes.append(str(error))
    return outcomes


def kept_events(server: FakeApiServer) -> list[dict[str, Any]]:
    return list(server.storage.objects(EVENTS).values())


def event(
    *,
    kind: str = "Pod",
    namespace: str = "blue",
    name: str = "web-0",
    uid: str = "0e5f1bb4-7a41-4d8e-b0d5-9c1c3f2a6d94",
    message: str = "net-a not found",
    seen: float = THEN,
) -> Event:
    return Event(kind, namespace, name, uid, EventType.WARNING, "NetworkNotFound", message, 1, seen, seen)
