"""A pod is sent after its namespace, which may select its network, also while the watch of namespaces is cut."""

import pytest

from manager.source import Applied, Gone, Namespace, Pod, SourceEvent
from tests.manager.kubernetes.conftest import Follow, Managed
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.kinds import NAMESPACES, Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.status_errors import StatusError
from tests.support.pods import reference
from tests.support.recorded_reflector import eventually
from tests.support.recorded_source import RecordedSource
from tests.support.stored_objects import stored_virtual_machines

NETWORK_KEY = "opencontrail.org/network"
LABEL = {"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "net-a"}}}


class Namespaces:
    """The server's answers about namespaces, which a test can interrupt."""

    def __init__(self, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self._server = server
        self._away = False
        monkeypatch.setattr(server.faults, "delay", self._delay)

    def cut(self) -> None:
        """Cuts watches and lists of namespaces."""
        self._away = True
        for watch in self._server.watches:
            if watch.is_of(NAMESPACES):
                watch.cut()

    def restore(self) -> None:
        self._away = False

    async def _delay(self, _verb: str, kind: Kind, _name: str) -> None:
        if self._away and kind == NAMESPACES:
            raise StatusError(503, "ServiceUnavailable", "away on purpose")


@pytest.fixture
def namespaces(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> Namespaces:
    return Namespaces(server, monkeypatch)


async def follow_and_cut(
    namespaces: Namespaces, follow: Follow, server: FakeApiServer, **settings: float
) -> RecordedSource:
    """A source that has listed everything, and gets no more events on namespaces."""
    recorded = await follow(**settings)
    await recorded.until_listed()
    await eventually(lambda: len(server.watches) == 3)
    namespaces.cut()
    await eventually(lambda: len(server.watches) == 2)
    return recorded


async def test_a_pod_of_a_new_namespace_is_sent_after_it(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer, namespaces: Namespaces
) -> None:
    recorded = await follow_and_cut(namespaces, follow, server)
    objects.add_namespace("red", **{NETWORK_KEY: "{}"})
    objects.add_pod("web-0", namespace="red")
    await wait_until_processed(recorded, objects, "other")
    assert "+pod web-0" not in recorded.lines()
    namespaces.restore()
    await recorded.until(lambda: "+pod web-0" in recorded.lines())
    assert about(recorded, "red", "web-0") == ["+red", "+web-0"]
    assert recorded.namespace("red").annotations == {NETWORK_KEY: "{}"}


async def test_a_pod_changed_while_it_waits_is_sent_in_its_newest_state(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer, namespaces: Namespaces
) -> None:
    recorded = await follow_and_cut(namespaces, follow, server)
    objects.add_namespace("red")
    objects.add_pod("web-0", namespace="red")
    await wait_until_processed(recorded, objects, "other-1")
    objects.change_pod("web-0", LABEL, namespace="red")
    await wait_until_processed(recorded, objects, "other-2")
    namespaces.restore()
    await recorded.until(lambda: "+pod web-0" in recorded.lines())
    await wait_until_processed(recorded, objects, "other-3")
    assert about(recorded, "red", "web-0") == ["+red", "+web-0"]
    assert recorded.pod("web-0").annotations == LABEL["metadata"]["annotations"]


async def test_a_pod_deleted_while_it_waits_is_never_sent_as_existing(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer, namespaces: Namespaces
) -> None:
    recorded = await follow_and_cut(namespaces, follow, server)
    objects.add_namespace("red")
    for name in ("web-0", "web-1"):
        objects.add_pod(name, namespace="red")
        objects.remove_pod(name, namespace="red")
    second = objects.add_pod("web-1", namespace="red")
    await wait_until_processed(recorded, objects, "other")
    assert about(recorded, "web-0", "web-1") == ["-web-0", "-web-1"]
    namespaces.restore()
    await recorded.until(lambda: "+pod web-1" in recorded.lines())
    assert about(recorded, "web-0", "web-1") == ["-web-0", "-web-1", "+web-1"]
    assert recorded.pod("web-1").uid == second


async def test_the_wait_for_a_namespace_times_out(
    follow: Follow,
    objects: ClusterObjects,
    server: FakeApiServer,
    namespaces: Namespaces,
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorded = await follow_and_cut(namespaces, follow, server, wait_timeout=0.05)
    objects.add_namespace("red")
    objects.add_pod("web-0", namespace="red")
    objects.add_pod("web-1", namespace="red")
    await recorded.until(lambda: {"+pod web-0", "+pod web-1"} <= set(recorded.lines()))
    assert "namespace red: unknown after 0.05 s, proceeding with 2 pods" in caplog.text
    objects.change_pod("web-0", LABEL, namespace="red")
    objects.remove_pod("web-0", namespace="red")
    await recorded.until(lambda: "-pod web-0" in recorded.lines())
    assert caplog.text.count(": unknown after ") == 1
    assert about(recorded, "red", "web-0") == ["+web-0", "+web-0", "-web-0"]


async def test_sent_pods_do_not_wait_again_if_their_namespace_is_deleted(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer
) -> None:
    recorded = await follow()
    objects.add_namespace("red")
    objects.add_pod("web-0", namespace="red")
    await recorded.until(lambda: "+pod web-0" in recorded.lines())
    server.remove(NAMESPACES, "red", namespace="")
    await recorded.until(lambda: about(recorded, "red") == ["+red", "-red"])
    objects.change_pod("web-0", LABEL, namespace="red")
    objects.remove_pod("web-0", namespace="red")
    await recorded.until(lambda: "-pod web-0" in recorded.lines())
    assert about(recorded, "web-0") == ["+web-0", "+web-0", "-web-0"]


async def test_listed_is_sent_only_when_no_pod_waits(
    follow: Follow,
    objects: ClusterObjects,
    server: FakeApiServer,
    namespaces: Namespaces,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a restarted manager would release the virtual machine of a running pod."""
    delay = server.faults.delay

    async def come_between(verb: str, kind: Kind, name: str) -> None:
        if (verb, kind.plural) == ("list", "pods"):
            monkeypatch.setattr(server.faults, "delay", delay)
            namespaces.cut()
            objects.add_namespace("red")
            objects.add_pod("web-0", namespace="red")
            objects.add_pod("web-1", namespace="red")
        await delay(verb, kind, name)

    monkeypatch.setattr(server.faults, "delay", come_between)
    recorded = await follow()
    await wait_until_processed(recorded, objects, "other")
    assert recorded.lists == []
    objects.remove_pod("web-1", namespace="red")
    await recorded.until(lambda: "-pod web-1" in recorded.lines())
    assert recorded.lists == []
    namespaces.restore()
    await recorded.until_listed()
    assert about(recorded, "red", "web-0") == ["+red", "+web-0"]


async def test_the_last_waiting_pod_may_be_deleted(
    follow: Follow, objects: ClusterObjects, server: FakeApiServer, namespaces: Namespaces
) -> None:
    recorded = await follow_and_cut(namespaces, follow, server)
    objects.add_namespace("red")
    objects.add_pod("web-0", namespace="red")
    objects.remove_pod("web-0", namespace="red")
    await recorded.until(lambda: "-pod web-0" in recorded.lines())
    await eventually(lambda: recorded.source.backlog == 0)


async def test_a_pod_gets_the_network_that_its_new_namespace_selects(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, namespaces: Namespaces
) -> None:
    async with managed():
        objects.add_nad("net-a")
        other = objects.add_pod("other", networks="net-a")
        await eventually(lambda: other in stored_virtual_machines(server))
        namespaces.cut()
        objects.add_namespace("red", **{NETWORK_KEY: reference("k8s-blue", "k8s-net-a-pod-network")})
        uid = objects.add_pod("web-0", namespace="red")
        later = objects.add_pod("later", networks="net-a")
        await eventually(lambda: later in stored_virtual_machines(server))
        assert uid not in stored_virtual_machines(server)
        namespaces.restore()
        await eventually(lambda: uid in stored_virtual_machines(server))
        assert stored_virtual_machines(server)[uid].interfaces[0].network[2] == "k8s-net-a-pod-network"


async def wait_until_processed(recorded: RecordedSource, objects: ClusterObjects, name: str) -> None:
    """Returns when a new pod of a known namespace is sent, and so all earlier changes."""
    objects.add_pod(name)
    await recorded.until(lambda: f"+pod {name}" in recorded.lines())


def about(recorded: RecordedSource, *names: str) -> list[str]:
    """Events on pods and namespaces of these names, in order."""
    return [line for event in recorded.events if (line := _line(event))[1:] in names]


def _line(event: SourceEvent) -> str:
    match event:
        case Applied(object=Pod() | Namespace() as one):
            return f"+{one.name}"
        case Gone(object=Pod() | Namespace() as one):
            return f"-{one.name}"
        case _:
            return ""
