"""A pod is told of after its namespace, which may choose its network, also while namespaces are not heard of."""

import pytest

from manager.source import Applied, Gone, Namespace, Pod, SourceEvent
from tests.manager.kubernetes.conftest import Follow, Managed
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.failures import StatusError
from tests.support.fake_apiserver.kinds import NAMESPACES, Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.following import eventually
from tests.support.kept_in_cluster import kept_machines
from tests.support.pods import reference
from tests.support.told_source import ToldSource

NETWORK_KEY = "opencontrail.org/network"
LABEL = {"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "net-a"}}}


class Namespaces:
    """What the server tells of namespaces, which can be taken away for a while."""

    def __init__(self, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self._server = server
        self._away = False
        monkeypatch.setattr(server.faults, "hold_up", self._hold_up)

    def cut(self) -> None:
        """Nobody hears of namespaces any more."""
        self._away = True
        for watch in self._server.watches:
            if watch.is_of(NAMESPACES):
                watch.cut()

    def mend(self) -> None:
        self._away = False

    async def _hold_up(self, _verb: str, kind: Kind, _name: str) -> None:
        if self._away and kind == NAMESPACES:
            raise StatusError(503, "ServiceUnavailable", "away on purpose")


@pytest.fixture
def namespaces(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> Namespaces:
    return Namespaces(server, monkeypatch)


async def follow_without(
    namespaces: Namespaces, follow: Follow, server: FakeApiServer, **settings: float
) -> ToldSource:
    """A source that knows of what was there, and hears of namespaces no more."""
    told = await follow(**settings)
    await told.until_listed()
    await eventually(lambda: len(server.watches) == 3)
    namespaces.cut()
    await eventually(lambda: len(server.watches) == 2)
    return told


async def test_a_pod_of_a_new_namespace_is_told_after_it(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer, namespaces: Namespaces
) -> None:
    told = await follow_without(namespaces, follow, server)
    objects.add_namespace("red", **{NETWORK_KEY: "{}"})
    objects.add_pod("web-0", namespace="red")
    await passed(told, objects, "other")
    assert "+pod web-0" not in told.lines()
    namespaces.mend()
    await told.until(lambda: "+pod web-0" in told.lines())
    assert about(told, "red", "web-0") == ["+red", "+web-0"]
    assert told.namespace("red").annotations == {NETWORK_KEY: "{}"}


async def test_one_that_changes_meanwhile_is_told_as_it_is_then(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer, namespaces: Namespaces
) -> None:
    told = await follow_without(namespaces, follow, server)
    objects.add_namespace("red")
    objects.add_pod("web-0", namespace="red")
    await passed(told, objects, "other-1")
    objects.change_pod("web-0", LABEL, namespace="red")
    await passed(told, objects, "other-2")
    namespaces.mend()
    await told.until(lambda: "+pod web-0" in told.lines())
    await passed(told, objects, "other-3")
    assert about(told, "red", "web-0") == ["+red", "+web-0"]
    assert told.pod("web-0").annotations == LABEL["metadata"]["annotations"]


async def test_one_that_goes_meanwhile_is_never_told_as_there_and_its_successor_is(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer, namespaces: Namespaces
) -> None:
    told = await follow_without(namespaces, follow, server)
    objects.add_namespace("red")
    for name in ("web-0", "web-1"):
        objects.add_pod(name, namespace="red")
        objects.remove_pod(name, namespace="red")
    second = objects.add_pod("web-1", namespace="red")
    await passed(told, objects, "other")
    assert about(told, "web-0", "web-1") == ["-web-0", "-web-1"]
    namespaces.mend()
    await told.until(lambda: "+pod web-1" in told.lines())
    assert about(told, "web-0", "web-1") == ["-web-0", "-web-1", "+web-1"]
    assert told.pod("web-1").uid == second


async def test_nobody_waits_for_ever(
    follow: Follow,
    objects: ClusterObjects,
    server: FakeApiServer,
    namespaces: Namespaces,
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = await follow_without(namespaces, follow, server, wait_timeout=0.05)
    objects.add_namespace("red")
    objects.add_pod("web-0", namespace="red")
    objects.add_pod("web-1", namespace="red")
    await told.until(lambda: {"+pod web-0", "+pod web-1"} <= set(told.lines()))
    assert "namespace red: unknown after 0.05 s, proceeding with 2 pods" in caplog.text
    objects.change_pod("web-0", LABEL, namespace="red")
    objects.remove_pod("web-0", namespace="red")
    await told.until(lambda: "-pod web-0" in told.lines())
    assert caplog.text.count(": unknown after ") == 1
    assert about(told, "red", "web-0") == ["+web-0", "+web-0", "-web-0"]


async def test_those_that_were_told_outlive_their_namespace_without_a_wait(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    told = await follow()
    objects.add_namespace("red")
    objects.add_pod("web-0", namespace="red")
    await told.until(lambda: "+pod web-0" in told.lines())
    server.remove(NAMESPACES, "red", namespace="")
    await told.until(lambda: about(told, "red") == ["+red", "-red"])
    objects.change_pod("web-0", LABEL, namespace="red")
    objects.remove_pod("web-0", namespace="red")
    await told.until(lambda: "-pod web-0" in told.lines())
    assert about(told, "web-0") == ["+web-0", "+web-0", "-web-0"]


async def test_a_list_is_whole_only_when_nobody_waits(
    follow: Follow,
    objects: ClusterObjects,
    server: FakeApiServer,
    namespaces: Namespaces,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the machine of a pod that lives would be freed by a manager that was just started."""
    hold_up = server.faults.hold_up

    async def come_between(verb: str, kind: Kind, name: str) -> None:
        if (verb, kind.plural) == ("list", "pods"):
            monkeypatch.setattr(server.faults, "hold_up", hold_up)
            namespaces.cut()
            objects.add_namespace("red")
            objects.add_pod("web-0", namespace="red")
            objects.add_pod("web-1", namespace="red")
        await hold_up(verb, kind, name)

    monkeypatch.setattr(server.faults, "hold_up", come_between)
    told = await follow()
    await passed(told, objects, "other")
    assert told.lists == []
    objects.remove_pod("web-1", namespace="red")
    await told.until(lambda: "-pod web-1" in told.lines())
    assert told.lists == []
    namespaces.mend()
    await told.until_listed()
    assert about(told, "red", "web-0") == ["+red", "+web-0"]


async def test_the_last_one_that_waits_may_go_as_well(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer, namespaces: Namespaces
) -> None:
    told = await follow_without(namespaces, follow, server)
    objects.add_namespace("red")
    objects.add_pod("web-0", namespace="red")
    objects.remove_pod("web-0", namespace="red")
    await told.until(lambda: "-pod web-0" in told.lines())
    await eventually(lambda: told.source.backlog == 0)


async def test_a_pod_gets_the_network_that_its_new_namespace_chose(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, namespaces: Namespaces
) -> None:
    async with managed():
        objects.add_nad("net-a")
        other = objects.add_pod("other", networks="net-a")
        await eventually(lambda: other in kept_machines(server))
        namespaces.cut()
        objects.add_namespace("red", **{NETWORK_KEY: reference("k8s-blue", "k8s-net-a-pod-network")})
        uid = objects.add_pod("web-0", namespace="red")
        later = objects.add_pod("later", networks="net-a")
        await eventually(lambda: later in kept_machines(server))
        assert uid not in kept_machines(server)
        namespaces.mend()
        await eventually(lambda: uid in kept_machines(server))
        assert kept_machines(server)[uid].interfaces[0].network[2] == "k8s-net-a-pod-network"


async def passed(told: ToldSource, objects: ClusterObjects, name: str) -> None:
    """Returns when a pod of a namespace that is known, and so all that came before, was told."""
    objects.add_pod(name)
    await told.until(lambda: f"+pod {name}" in told.lines())


def about(told: ToldSource, *names: str) -> list[str]:
    """What was told of pods and namespaces of these names, in order."""
    return [line for event in told.told if (line := _line(event))[1:] in names]


def _line(event: SourceEvent) -> str:
    match event:
        case Applied(object=Pod() | Namespace() as one):
            return f"+{one.name}"
        case Gone(object=Pod() | Namespace() as one):
            return f"-{one.name}"
        case _:
            return ""
