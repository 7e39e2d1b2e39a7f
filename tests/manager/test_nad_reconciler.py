"""NAD reconciler: networks are created, changed, rejected, retired, revived and deleted."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

import pytest

from contrail_config.errors import ConflictError, InUseError
from contrail_config.objects import EventType, Route, Subnet, VirtualNetwork
from contrail_config.store import Change, ChangeType
from manager.configuration import ManagerConfiguration, NamespaceIsolation
from manager.source import Applied, Gone, Nad
from tests.manager.conftest import Start
from tests.support.pods import FOREIGN_CONFIG, make_nad, make_pod, reference, uid_of
from tests.support.recorded_reflector import eventually
from tests.support.running_manager import RunningManager
from tests.support.stores_with_events import StoreWithEvents
from tests.support.virtual_networks import make_network

NET_A = make_nad("net-a", cidr="10.1.0.0/16")
WIDER = make_nad("net-a", cidr="10.0.0.0/15")
ALIAS = make_nad("alias", cidr=None, network=reference("k8s-blue", "k8s-net-a-pod-network"))
NAME = "k8s-net-a-pod-network"
OWN_NAME = ("default-domain", "k8s-blue", NAME)


async def kept(running: RunningManager, name: str = NAME) -> VirtualNetwork:
    network = await running.network(name)
    assert network is not None
    return network


async def addresses(running: RunningManager, name: str, *, index: int = 1) -> list[str]:
    """Addresses of an interface of the pod `name`."""
    (vm,) = [each for each in await running.store.virtual_machines() if each.pod == name]
    return [address.address for address in vm.interfaces[index].addresses]


@contextlib.asynccontextmanager
async def watch_without_changes(**_options: object) -> AsyncIterator[AsyncIterator[Change[VirtualNetwork]]]:
    async def changes() -> AsyncIterator[Change[VirtualNetwork]]:
        await asyncio.Event().wait()
        yield Change(ChangeType.SYNCED, None)

    yield changes()


class TestCreation:
    async def test_a_nad_creates_its_network(self, running: RunningManager) -> None:
        config = '{"type": "contrail-k8s-cni", "mtu": 1400, "dns": {"nameservers": ["10.1.0.53"]}}'
        await running.send_list(make_nad("net-a", cidr="10.1.0.0/16,fd00:1::/64", gateway="10.1.0.254", config=config))
        network = await kept(running)
        assert network.name == "default-domain:k8s-blue:k8s-net-a-pod-network"
        assert network.subnets == (Subnet("10.1.0.0/16", "10.1.0.254"), Subnet("fd00:1::/64", "fd00:1::1"))
        assert (network.mtu, network.dns, network.nad) == (1400, ("10.1.0.53",), "blue/net-a")
        assert network.vni > 0

    async def test_its_creation_is_reported_once(self, running: RunningManager) -> None:
        await running.send_list(NET_A)
        await running.send_list(NET_A)
        assert await running.events_on(NET_A) == [
            (
                "NetworkCreated",
                "network default-domain:k8s-blue:k8s-net-a-pod-network with subnets 10.1.0.0/16 (gateway 10.1.0.1)",
            )
        ]
        (event,) = await running.store.events()
        assert (event.kind, event.type, event.count) == ("NetworkAttachmentDefinition", EventType.NORMAL, 1)

    async def test_nads_of_one_name_in_two_namespaces_have_separate_networks(self, running: RunningManager) -> None:
        other = make_nad("net-a", namespace="red", cidr="10.1.0.0/16")
        await running.send_list(NET_A, other, make_pod(networks="net-a,red/net-a"))
        first, second = (await running.store.virtual_machines())[0].interfaces[1:]
        assert first.addresses == second.addresses
        assert first.network_uuid != second.network_uuid
        await running.remove(other)
        assert (await kept(running)).nad is not None

    @pytest.mark.parametrize(
        ("nad", "reason", "culprit"),
        [
            (make_nad(cidr="10.1.0.1/16"), "NetworkInvalid", "'10.1.0.1/16'"),
            (make_nad(cidr="10.1.0.0/16,10.1.2.0/24"), "NetworkInvalid", "10.1.2.0/24"),
            (make_nad(cidr=None), "NetworkInvalid", "opencontrail.org/cidr"),
            (make_nad(cidr="10.1.0.0/16", gateway="10.2.0.1"), "NetworkInvalid", "'10.2.0.1'"),
            (make_nad(cidr="10.1.0.0/16", network=reference("p", "n")), "NetworkInvalid", "opencontrail.org/network"),
            (make_nad(config="{"), "NetworkInvalid", "spec.config"),
            (make_nad("default", namespace="default"), "NetworkNameTaken", "k8s-default-pod-network"),
            (make_nad(cidr=None, network=reference("p", "n")), "NetworkNotFound", "default-domain:p:n"),
        ],
    )
    async def test_an_invalid_nad_is_reported_and_others_are_not_affected(
        self, running: RunningManager, nad: Nad, reason: str, culprit: str
    ) -> None:
        await running.send_list(nad, make_nad("fine", cidr="10.8.0.0/16"), make_pod(networks="fine"))
        ((found, message),) = await running.events_on(nad)
        assert found == reason
        assert culprit in message
        assert [network.nad for network in await running.store.networks()] == ["blue/fine", None]
        assert await addresses(running, "web-0") == ["10.8.0.2"]

    async def test_a_nad_cannot_take_the_name_of_the_pod_network(self, running: RunningManager) -> None:
        """The original kube-manager binds this NAD to the pod network, and deletes that with it."""
        nad = make_nad("default", namespace="default", cidr="10.9.0.0/16")
        await running.send_list(nad, make_pod())
        await running.remove(nad)
        assert (await kept(running, "k8s-default-pod-network")).subnets == (Subnet("10.32.0.0/12", "10.32.0.1"),)


class TestChange:
    async def test_a_subnet_change_is_rejected(self, running: RunningManager) -> None:
        await running.send_list(NET_A)
        await running.apply(WIDER, make_pod(networks="net-a"))
        assert (await kept(running)).subnets == (Subnet("10.1.0.0/16", "10.1.0.1"),)
        assert await addresses(running, "web-0") == ["10.1.0.2"]
        (_, (reason, message)) = await running.events_on(WIDER)
        assert reason == "SubnetChangeRefused"
        assert "keeps subnets 10.1.0.0/16 (gateway 10.1.0.1), not 10.0.0.0/15" in message

    async def test_other_changes_apply_to_new_pods(self, running: RunningManager) -> None:
        await running.send_list(NET_A, make_pod("old", networks="net-a"))
        config = '{"type": "contrail-k8s-cni", "mtu": 9000, "routes": [{"dst": "192.168.0.0/16"}]}'
        await running.apply(make_nad("net-a", config=config), make_pod("new", networks="net-a"))
        network = await kept(running)
        assert (network.mtu, network.routes) == (9000, (Route("192.168.0.0/16"),))
        new, old = await running.store.virtual_machines()
        assert (new.interfaces[1].mtu, old.interfaces[1].mtu) == (9000, 1500)
        assert await running.reasons(NET_A) == ["NetworkCreated"]

    async def test_an_invalid_change_keeps_the_network_but_accepts_no_new_pods(self, running: RunningManager) -> None:
        await running.send_list(NET_A, make_pod("old", networks="net-a"))
        await running.apply(make_nad("net-a", cidr="nonsense"), make_pod("new", networks="net-a"))
        assert [vm.pod for vm in await running.store.virtual_machines()] == ["old"]
        assert not (await kept(running)).retired
        await running.apply(NET_A)
        assert await addresses(running, "new") == ["10.1.0.3"]

    async def test_a_reference_change_is_rejected_while_the_old_network_exists(self, running: RunningManager) -> None:
        net_b = make_nad("net-b", cidr="10.2.0.0/16")
        to_b = make_nad("alias", cidr=None, network=reference("k8s-blue", "k8s-net-b-pod-network"))
        await running.send_list(NET_A, net_b, ALIAS)
        await running.apply(to_b, make_pod(networks="alias"))
        assert await addresses(running, "web-0") == ["10.1.0.2"]
        ((reason, message),) = await running.events_on(to_b)
        assert reason == "ReferenceChangeRefused"
        assert "stays bound to network default-domain:k8s-blue:k8s-net-a-pod-network, not " in message

    async def test_a_reference_change_applies_once_the_old_network_is_gone(self, running: RunningManager) -> None:
        """Although the old network changes before: the first of its two pods is deleted."""
        net_b = make_nad("net-b", cidr="10.2.0.0/16")
        to_b = make_nad("alias", cidr=None, network=reference("k8s-blue", "k8s-net-b-pod-network"))
        users = [make_pod(f"user-{number}", networks="net-a") for number in range(2)]
        await running.send_list(NET_A, net_b, ALIAS, *users)
        await running.apply(to_b)
        await running.remove(NET_A)
        for user in users:
            await running.remove(user)
        await running.catch_up()
        await running.apply(make_pod(networks="alias"))
        assert await addresses(running, "web-0") == ["10.2.0.2"]

    async def test_a_dangling_reference_can_be_corrected(self, running: RunningManager) -> None:
        dangling = make_nad("alias", cidr=None, network=reference("k8s-blue", "typo"))
        await running.send_list(NET_A, dangling, make_pod(networks="alias"))
        await running.apply(ALIAS)
        assert await addresses(running, "web-0") == ["10.1.0.2"]

    @pytest.mark.parametrize(("before", "after"), [(NET_A, "reference"), (ALIAS, "cidr")])
    async def test_a_change_between_subnet_and_reference_is_rejected(
        self, running: RunningManager, before: Nad, after: str
    ) -> None:
        net_b = make_nad("net-b", cidr="10.2.0.0/16")
        to_b = reference("k8s-blue", "k8s-net-b-pod-network")
        changed = (
            make_nad(before.name, cidr=None, network=to_b)
            if after == "reference"
            else make_nad(before.name, cidr="10.9.0.0/16")
        )
        await running.send_list(NET_A, net_b, ALIAS)
        await running.apply(changed, make_pod(networks=before.name))
        assert await addresses(running, "web-0") == ["10.1.0.2"]
        assert (await running.reasons(changed))[-1] == "ReferenceChangeRefused"


class TestDeletion:
    async def test_an_unused_network_is_deleted_at_once(self, running: RunningManager) -> None:
        await running.send_list(NET_A)
        await running.remove(NET_A)
        assert await running.network(NAME) is None

    async def test_a_used_network_accepts_no_new_pods_and_is_deleted_with_its_last_interface(
        self, running: RunningManager
    ) -> None:
        old, new = make_pod("old", networks="net-a"), make_pod("new", networks="net-a")
        await running.send_list(NET_A, old)
        await running.remove(NET_A)
        await running.apply(new)
        assert (await kept(running)).retired
        assert await running.reasons(new) == ["NetworkNotFound"]
        assert await addresses(running, "old") == ["10.1.0.2"]
        await running.remove(old)
        await running.wait_until_network_deleted(NAME)

    async def test_a_network_whose_last_interface_goes_while_it_is_retired_is_known_to_be_deleted(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The store rejects its deletion, then deletes it with the interface, and reports that before the rejection."""
        delete, name = running.store.delete_network, OWN_NAME
        known = running.manager.catalogue.networks

        async def reject_late(uuid: str) -> None:
            monkeypatch.setattr(running.store, "delete_network", delete)
            await delete(uuid)
            await eventually(lambda: name not in known)
            raise InUseError("an interface has an address in it")

        await running.send_list(NET_A)
        monkeypatch.setattr(running.store, "delete_network", reject_late)
        await running.remove(NET_A)
        assert name not in known
        assert [network.fq_name for network in await running.store.networks()] == list(known)

    async def test_nads_that_refer_to_a_deleted_network_get_an_event(self, running: RunningManager) -> None:
        pod = make_pod(networks="alias")
        await running.send_list(NET_A, ALIAS)
        await running.remove(NET_A)
        await running.apply(pod)
        assert await running.reasons(ALIAS) == ["NetworkNotFound"]
        assert await running.reasons(pod) == ["NetworkNotFound"]
        await running.apply(make_nad("net-a", generation=2))
        assert await addresses(running, "web-0") == ["10.1.0.2"]

    async def test_references_that_a_nad_had_before_are_not_kept(self, running: RunningManager) -> None:
        await running.send_list(NET_A)
        for number in range(5):
            missing = reference("k8s-blue", f"missing-{number}")
            await running.apply(make_nad("alias", cidr=None, network=missing))
            assert len(running.manager.nads.dependents) == 1
        await running.remove(ALIAS)
        assert len(running.manager.nads.dependents) == 0

    async def test_a_nad_that_changes_to_another_plugin_loses_its_network(self, running: RunningManager) -> None:
        await running.send_list(NET_A)
        await running.apply(make_nad("net-a", config=FOREIGN_CONFIG))
        assert await running.network(NAME) is None

    async def test_a_late_deletion_of_a_predecessor_does_not_affect_its_successor(
        self, running: RunningManager
    ) -> None:
        await running.send_list(NET_A)
        await running.apply(make_nad("net-a", generation=2))
        await running.remove(NET_A)
        await running.apply(make_pod(networks="net-a"))
        assert await addresses(running, "web-0") == ["10.1.0.2"]


class TestRecreation:
    async def test_an_equal_nad_revives_the_network(self, running: RunningManager) -> None:
        await running.send_list(NET_A, make_pod("old", networks="net-a"))
        before = await kept(running)
        await running.remove(NET_A)
        await running.apply(make_nad("net-a", generation=2), make_pod("new", networks="net-a"))
        assert await kept(running) == before
        assert await addresses(running, "new") == ["10.1.0.3"]

    @pytest.mark.parametrize("end_is_sent", [True, False], ids=["its deletion was sent", "it was replaced unseen"])
    async def test_a_different_nad_waits_for_the_last_interface_of_the_old_network(
        self, running: RunningManager, end_is_sent: bool
    ) -> None:
        old, new = make_pod("old", networks="net-a"), make_pod("new", networks="net-a")
        different = make_nad("net-a", cidr="10.77.0.0/16", generation=2)
        await running.send_list(NET_A, old)
        if end_is_sent:
            await running.remove(NET_A)
        await running.apply(different, new)
        assert await running.reasons(different) == ["NetworkStillInUse"]
        assert await running.reasons(new) == ["NetworkUnusable"]
        await running.remove(old)
        vm = await running.wait_for_vm(new)
        assert vm.interfaces[1].addresses[0].address == "10.77.0.2"
        await running.idle()
        assert await running.reasons(different) == ["NetworkStillInUse", "NetworkCreated"]

    async def test_a_different_nad_proceeds_at_once_if_the_old_network_is_unused(self, running: RunningManager) -> None:
        await running.send_list(NET_A)
        await running.apply(make_nad("net-a", cidr="10.77.0.0/16", generation=2))
        assert (await kept(running)).subnets == (Subnet("10.77.0.0/16", "10.77.0.1"),)

    async def test_pods_replaced_at_the_same_time_do_not_wait(self, running: RunningManager) -> None:
        old, new = make_pod("old", networks="net-a"), make_pod("new", networks="net-a")
        different = make_nad("net-a", cidr="10.77.0.0/16", generation=2)
        await running.send_list(NET_A, old)
        await running.send(Gone(old), Gone(NET_A), Applied(different), Applied(new))
        assert await addresses(running, "new") == ["10.77.0.2"]
        assert await running.reasons(different) == ["NetworkCreated"]


async def test_a_retired_network_is_gone_although_its_number_was_given_away_before_the_watch_reported_that(
    store: StoreWithEvents, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "watch_networks", watch_without_changes)
    running = await start()
    pod = make_pod(networks="net-a")
    await running.send_list(NET_A, pod)
    await running.remove(NET_A)
    number = (await running.network("k8s-net-a-pod-network") or pytest.fail("no network")).vni
    await store.delete_virtual_machine(pod.uid)  # the store deletes the network with its last interface
    await store.put_network(make_network("next", vni=number))
    await running.remove(pod)
    assert await running.network("k8s-net-a-pod-network") is None
    successor = make_pod("web-1", networks="net-a")
    await running.apply(make_nad("net-a", cidr="10.7.0.0/24", generation=2), successor)
    assert (await running.vm(successor)).interfaces[1].addresses[0].address == "10.7.0.2"


class TestNetworksOfOthers:
    """A network that no NAD created, as in a Contrail system."""

    NAME = ("default-domain", "k8s-blue", "k8s-net-a-pod-network")

    def network(self, *cidrs: str) -> VirtualNetwork:
        subnets = tuple(Subnet(cidr, None) for cidr in cidrs)
        return VirtualNetwork(fq_name=self.NAME, uuid=uid_of("others", "network"), subnets=subnets)

    async def test_a_nad_cannot_take_its_name_until_it_is_deleted(self, running: RunningManager) -> None:
        await running.store.put_network(self.network("10.9.0.0/24"))
        pod = make_pod(networks="net-a")
        await running.send_list(NET_A, pod)
        ((reason, message),) = await running.events_on(NET_A)
        assert reason == "NetworkNameTaken"
        assert re.match("network default-domain:k8s-blue:k8s-net-a-pod-network:? already exists", message)
        await running.store.delete_network(uid_of("others", "network"))
        assert (await running.wait_for_vm(pod)).interfaces[1].addresses[0].address == "10.1.0.2"
        await running.idle()
        assert await running.reasons(NET_A) == ["NetworkNameTaken", "NetworkCreated"]

    async def test_one_that_the_watch_has_not_delivered_yet_is_not_overwritten(
        self, store: StoreWithEvents, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store, "watch_networks", watch_without_changes)
        running = await start()
        await running.send_list()
        await running.store.put_network(self.network("10.9.0.0/24"))
        await running.apply(NET_A)
        assert await running.reasons(NET_A) == ["NetworkNameTaken"]

    async def test_a_nad_gets_its_name_although_the_watch_delivered_the_other_network_late(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await running.send_list()

        async def be_second(network: VirtualNetwork) -> VirtualNetwork:
            raise ConflictError(f"network {network.name}: already exists")

        with monkeypatch.context() as before_the_watch:
            before_the_watch.setattr(running.store, "put_network", be_second)
            await running.apply(NET_A)
        await running.store.put_network(self.network("10.9.0.0/24"))
        await running.catch_up()
        await running.store.delete_network(uid_of("others", "network"))
        await eventually(lambda: NET_A.key in running.manager.catalogue.nads and self.is_own(running))
        await running.idle()
        assert (await running.reasons(NET_A))[-1] == "NetworkCreated"

    def is_own(self, running: RunningManager) -> bool:
        network = running.manager.catalogue.networks.get(self.NAME)
        return network is not None and network.nad == NET_A.key

    @pytest.mark.lacking("vnc", "it never writes the subnets of networks of others")
    async def test_its_changes_apply_to_new_pods(self, running: RunningManager) -> None:
        await running.store.put_network(self.network())
        pod = make_pod(networks="alias")
        await running.send_list(ALIAS, pod)
        ((reason, message),) = await running.events_on(pod)
        assert reason == "NetworkUnusable"
        assert message.endswith("k8s-net-a-pod-network has no subnet")
        await running.store.put_network(self.network("10.9.0.0/24"))
        assert (await running.wait_for_vm(pod)).interfaces[1].addresses[0].address == "10.9.0.1"

    async def test_pods_and_nads_wait_again_when_it_is_deleted(self, running: RunningManager) -> None:
        await running.store.put_network(self.network("10.9.0.0/24"))
        await running.send_list(ALIAS)
        await running.store.delete_network(uid_of("others", "network"))
        await running.catch_up()
        pod = make_pod(networks="alias")
        await running.apply(pod)
        assert await running.reasons(pod) == ["NetworkNotFound"]
        assert await running.reasons(ALIAS) == ["NetworkNotFound"]


class TestIsolation:
    async def test_a_tenants_nad_cannot_refer_to_another_namespace(self, start: Start) -> None:
        running = await start(ManagerConfiguration(namespace_isolation=NamespaceIsolation(enabled=True)))
        smuggled = make_nad("alias", namespace="red", cidr=None, network=reference("k8s-blue", NAME))
        pod = make_pod(namespace="red", networks="alias")
        await running.send_list(NET_A, smuggled, pod)
        ((reason, message),) = await running.events_on(smuggled)
        assert reason == "NetworkForbidden"
        assert message == f"network default-domain:k8s-blue:{NAME}: denied to red by namespace isolation"
        assert await running.allocated_count() == 0
