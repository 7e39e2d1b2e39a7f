"""Requests for the ports of pods: an annotation, which only the agent of the node takes, and forgets after a while.

What is written runs on each API server.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest

from contrail_config.errors import StoreError
from contrail_config.kube.client import KubeClient, connect
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import VIRTUAL_MACHINE_DOCUMENTS, VirtualMachineObject, virtual_machine_object
from contrail_config.kubernetes.port_requests import (
    MAX_ANSWERED,
    MAX_REQUEST_LENGTH,
    OPEN,
    PORTS_REQUESTED,
    PortRequests,
    write_request,
)
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualMachine
from contrail_config.store import ChangeType
from tests.support.apiservers import API_SERVERS
from tests.support.fake_clock import FakeClock
from tests.support.virtual_machines import make_pending, make_virtual_machine


def visible(item: VirtualMachineObject) -> VirtualMachine | None:
    return item.spec if item.is_trusted else None


def requested(virtual_machine: VirtualMachine, request: str, *, namespace: str | None = None) -> VirtualMachineObject:
    """The object of a virtual machine with a request."""
    found = virtual_machine_object(virtual_machine)
    metadata = msgspec.structs.replace(found.metadata, annotations={PORTS_REQUESTED: request})
    if namespace is not None:
        metadata = msgspec.structs.replace(metadata, namespace=namespace)
    return msgspec.structs.replace(found, metadata=metadata)


class TestOnEachServer:
    """Behaviour on every API server."""

    @pytest.fixture(params=API_SERVERS)
    async def client(self, request: pytest.FixtureRequest) -> AsyncIterator[KubeClient]:
        async with API_SERVERS[request.param]() as access, connect(access) as client:
            await ensure_crds(client)
            yield client

    @pytest.fixture
    async def stored(self, client: KubeClient) -> AsyncIterator[VirtualMachine]:
        """A virtual machine in the store."""
        virtual_machine = make_virtual_machine("web")
        store = KubernetesStore(client)
        await store.put_virtual_machine(virtual_machine)
        yield virtual_machine
        await store.delete_virtual_machine(virtual_machine.uuid)
        await store.close()

    async def test_the_agent_of_the_node_sees_a_request_and_no_change_of_the_virtual_machine(
        self, client: KubeClient, stored: VirtualMachine
    ) -> None:
        requests = PortRequests()
        store = KubernetesStore(client, port_requests=requests)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(store.close)
            changes = await stack.enter_async_context(store.watch_virtual_machines(node=stored.node))
            async for change in changes:
                if change.type is ChangeType.SYNCED:
                    break
            assert stored.uuid not in requests.open()
            following = asyncio.ensure_future(anext(changes))
            for request in ("first", "second"):
                requests.opened.clear()
                await write_request(client, stored, request)
                await asyncio.wait_for(requests.opened.wait(), 10)
                assert requests.open()[stored.uuid] == request
            marker = make_virtual_machine("marker")
            await store.put_virtual_machine(marker)
            assert (await asyncio.wait_for(following, 10)).object == marker
            await store.delete_virtual_machine(marker.uuid)

    async def test_labels_annotations_and_the_virtual_machine_stay(
        self, client: KubeClient, stored: VirtualMachine
    ) -> None:
        place = virtual_machine_object(stored).metadata
        before = await client.patch(
            VIRTUAL_MACHINE_DOCUMENTS,
            place.name,
            {"metadata": {"annotations": {"example.org/note": "kept"}}},
            namespace=place.namespace,
        )
        await write_request(client, stored, "now")
        after = await client.get(VIRTUAL_MACHINE_DOCUMENTS, place.name, namespace=place.namespace)
        assert after.metadata.annotations == {"example.org/note": "kept", PORTS_REQUESTED: "now"}
        assert (after.metadata.labels, after.spec, after.status) == (
            before.metadata.labels,
            before.spec,
            before.status,
        )

    async def test_a_request_for_a_deleted_pod_fails(self, client: KubeClient, stored: VirtualMachine) -> None:
        with pytest.raises(StoreError, match="k8s__default__gone"):
            await write_request(client, make_virtual_machine("gone"), "now")


class TestRequests:
    """What an agent has seen."""

    @pytest.fixture
    def requests(self, clock: FakeClock) -> PortRequests:
        return PortRequests(clock=clock)

    def test_a_request_is_open_for_a_while_after_it_was_seen(self, requests: PortRequests, clock: FakeClock) -> None:
        pod, see = make_virtual_machine(), requests.seen_by(visible)
        see(requested(pod, "first"))
        clock.advance(OPEN - 1)
        see(requested(pod, "first"))  # the object changed, the request did not
        assert requests.open() == {pod.uuid: "first"}
        clock.advance(1)
        assert requests.open() == {}
        see(requested(pod, "second"))
        assert requests.open() == {pod.uuid: "second"}

    def test_only_a_new_request_wakes(self, requests: PortRequests) -> None:
        pod, see = make_virtual_machine(), requests.seen_by(visible)
        see(virtual_machine_object(pod))
        assert not requests.opened.is_set()
        see(requested(pod, "first"))
        assert requests.opened.is_set()
        requests.opened.clear()
        see(requested(pod, "first"))
        assert not requests.opened.is_set()

    def test_the_latest_requests_are_answered_and_no_more_of_them_than_a_report_has(
        self, requests: PortRequests
    ) -> None:
        pods, see = (
            [make_virtual_machine(f"p{number}") for number in range(MAX_ANSWERED + 1)],
            requests.seen_by(visible),
        )
        for pod in pods:
            see(requested(pod, "first"))
        see(requested(pods[1], "second"))
        latest = [pods[1], *reversed(pods[2:])]
        assert list(requests.open()) == [pod.uuid for pod in latest]

    def test_however_many_are_requested_few_are_known(self, requests: PortRequests) -> None:
        see = requests.seen_by(visible)
        for number in range(1000):
            see(requested(make_virtual_machine(f"p{number}"), "now"))
        assert len(requests._known) == 256

    @pytest.mark.parametrize("request_text", ["", "x" * (MAX_REQUEST_LENGTH + 1)])
    def test_an_empty_or_long_annotation_is_none(self, requests: PortRequests, request_text: str) -> None:
        requests.seen_by(visible)(requested(make_virtual_machine(), request_text))
        assert requests.open() == {}

    def test_an_object_that_no_manager_wrote_requests_nothing(self, requests: PortRequests) -> None:
        requests.seen_by(visible)(requested(make_virtual_machine(), "now", namespace="shop"))
        assert requests.open() == {}

    def test_a_pending_virtual_machine_is_returned_as_any_other(self, requests: PortRequests) -> None:
        pending = make_pending()
        assert requests.seen_by(visible)(requested(pending, "now")) == pending
