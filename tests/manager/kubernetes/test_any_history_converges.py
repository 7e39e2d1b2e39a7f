"""Random histories of a cluster, with lists, cuts and crashes at any moment: in the end the store is as it should be.

Each pod has exactly its interfaces, in order; no address is given twice; nothing is left of what is gone; and what a
pod was given never changes.
"""

import asyncio
import json
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.support.cluster_objects import NADS, NETWORKS_KEY, NO_SANDBOX, ClusterObjects
from tests.support.fake_apiserver.kinds import PODS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.following import eventually
from tests.support.manager_life import ManagerLife

DEADLINE = 20.0
PODS_NAMED = ["p0", "p1", "p2", "p3"]
NADS_NAMED = {"net-a": "10.1.0.0/16", "net-b": "10.2.0.0/24,fd00:2::/64"}
NETWORKS = ["", "net-a", "net-a,net-a", "net-b,net-a"]
TURNS = [0, 1, 5, 20, 60, 200]
"""Of the event loop: too few for anything to be answered, just enough, or enough for all there is to do."""

T = TypeVar("T")


class Cluster(RuleBasedStateMachine):
    """Users and kubelets change the cluster while managers live and crash."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.server = FakeApiServer()
        self.given: dict[str, VirtualMachine] = {}

    def run(self, awaitable: Awaitable[T]) -> T:
        async def waited() -> T:
            async with asyncio.timeout(DEADLINE):
                return await awaitable

        return self.runner.run(waited())

    @initialize()
    def start(self) -> None:
        self.run(self._start())

    async def _start(self) -> None:
        await self.server.start()
        self.objects = ClusterObjects(self.server)
        self.store = await SqliteStore.open(Path(self.folder.name) / "config.db")
        self.life = ManagerLife(self.server, self.store)
        await self.life.start()
        await eventually(lambda: self.objects.definition() is not None and "list pods" in self.server.requests)

    @rule(name=st.sampled_from(PODS_NAMED), networks=st.sampled_from(NETWORKS), bound=st.booleans())
    def pod_comes(self, name: str, networks: str, bound: bool) -> None:
        self.pod_goes(name)
        self.objects.add_pod(name, networks=networks, node="node-1" if bound else None)

    @rule(name=st.sampled_from(PODS_NAMED))
    def pod_goes(self, name: str) -> None:
        if name in self._pods():
            self.objects.remove_pod(name)

    @rule(name=st.sampled_from(PODS_NAMED))
    def pod_is_bound(self, name: str) -> None:
        if name in self._pods():
            self.objects.change_pod(name, {"spec": {"nodeName": "node-1"}})

    @rule(name=st.sampled_from(PODS_NAMED))
    def pod_ends(self, name: str) -> None:
        if name in self._pods():
            self.objects.change_pod(name, {"status": NO_SANDBOX})

    @rule(name=st.sampled_from(sorted(NADS_NAMED)))
    def nad_comes(self, name: str) -> None:
        if name not in self._nads() and self.objects.definition() is not None:
            self.objects.add_nad(name, cidr=NADS_NAMED[name])

    @rule(name=st.sampled_from(sorted(NADS_NAMED)))
    def nad_goes(self, name: str) -> None:
        if name in self._nads():
            self.objects.remove_nad(name)

    @rule()
    def history_is_forgotten(self) -> None:
        self.server.forget_history()

    @rule()
    def watches_end(self) -> None:
        self.server.end_watches()

    @rule()
    def watches_are_cut(self) -> None:
        self.server.cut_watches()

    @rule(repeated=st.booleans(), swapped=st.booleans())
    def watches_are_unreliable(self, repeated: bool, swapped: bool) -> None:
        self.server.faults.repeated, self.server.faults.swapped = repeated, swapped

    @rule(code=st.sampled_from([409, 429, 500]), times=st.integers(1, 3))
    def requests_fail(self, code: int, times: int) -> None:
        self.server.faults.refuse(code, times=times)

    @rule(turns=st.sampled_from(TURNS))
    def time_passes(self, turns: int) -> None:
        async def turn() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.run(turn())

    @rule(turns=st.sampled_from(TURNS))
    def the_manager_crashes(self, turns: int) -> None:
        self.time_passes(turns)
        self.run(self._crash())

    async def _crash(self) -> None:
        await self.life.crash()
        self.life = ManagerLife(self.server, self.store)
        await self.life.start()

    @rule()
    def all_comes_to_rest(self) -> None:
        self.run(self._settle())

    @invariant()
    def the_manager_lives(self) -> None:
        if hasattr(self, "life"):
            self.life.check()

    def teardown(self) -> None:
        try:
            if hasattr(self, "life"):
                self.run(self._settle())
                self.run(self._check_that_all_can_go())
        finally:
            self.runner.run(self._end())
            self.runner.close()
            self.folder.cleanup()

    async def _settle(self) -> None:
        """Returns when the store is as the cluster says."""
        reason = ""
        try:
            async with asyncio.timeout(DEADLINE / 2):
                while reason := await self._difference():
                    self.life.check()
                    await asyncio.sleep(0.002)
        except TimeoutError:
            raise AssertionError(reason) from None
        await self._check_what_was_given()

    async def _difference(self) -> str:
        machines = {machine.uuid: machine for machine in await self.store.machines()}
        live = {pod["metadata"]["uid"]: pod for pod in self._pods().values() if _holds_interfaces(pod)}
        if strangers := machines.keys() - live.keys():
            return f"machines without pods: {strangers}"
        for uid, pod in live.items():
            wanted = [None, *_wanted(pod)]
            if uid not in machines:
                if self._nads().keys() >= {key.partition("/")[2] for key in wanted if key}:
                    return f"not served: {pod}"
            elif problem := _misfit(machines[uid], pod, wanted):
                return problem
        return await self._stray(machines)

    async def _stray(self, machines: dict[str, VirtualMachine]) -> str:
        interfaces = [interface for machine in machines.values() for interface in machine.interfaces]
        if (owners := await self.store.address_owners()) != {interface.uuid for interface in interfaces}:
            return f"addresses of {owners}, interfaces {interfaces}"
        addresses = [(one.network_uuid, address.address) for one in interfaces for address in one.addresses]
        if len(addresses) != len(set(addresses)):
            return f"an address twice: {addresses}"
        used = {interface.network_uuid for interface in interfaces}
        for network in await self.store.networks():
            is_there = network.nad is None or network.nad.partition("/")[2] in self._nads()
            if (not is_there or network.retired) and network.uuid not in used:
                return f"a network that nobody has: {network}"
        return ""

    async def _check_what_was_given(self) -> None:
        machines = {machine.uuid: machine for machine in await self.store.machines()}
        for uuid, machine in machines.items():
            assert self.given.setdefault(uuid, machine) == machine

    async def _check_that_all_can_go(self) -> None:
        self.server.faults.refusals.clear()
        for name in list(self._pods()):
            self.objects.remove_pod(name)
        for name in list(self._nads()):
            self.objects.remove_nad(name)
        await self._settle()
        assert await self.store.machines() == []
        assert await self.store.address_owners() == set()
        assert [network.nad for network in await self.store.networks()] == [None]

    async def _end(self) -> None:
        if hasattr(self, "life"):
            await self.life.crash()
            await self.store.close()
        await self.server.stop()

    def _pods(self) -> dict[str, Object]:
        return {name: pod for (_, name), pod in self.server.storage.objects(PODS).items()}

    def _nads(self) -> dict[str, Object]:
        return {name: nad for (_, name), nad in self.server.storage.objects(NADS).items()}


def _holds_interfaces(pod: Object) -> bool:
    return "nodeName" in pod["spec"] and pod["status"] != NO_SANDBOX


def _wanted(pod: Object) -> list[str]:
    """The NADs of the pod, in order."""
    return [f"blue/{name}" for name in pod["metadata"]["annotations"][NETWORKS_KEY].split(",") if name]


def _misfit(machine: VirtualMachine, pod: Object, wanted: list[str | None]) -> str:
    if (found := [interface.nad for interface in machine.interfaces]) != wanted:
        return f"interfaces in {found}, not {wanted}"
    status = json.loads(pod["metadata"]["annotations"].get("k8s.v1.cni.cncf.io/network-status", "[]"))
    addresses = [[address.address for address in interface.addresses] for interface in machine.interfaces]
    if [attachment["ips"] for attachment in status] != addresses:
        return f"status {status} of {machine}"
    return ""


def test_any_history_converges() -> None:
    run_state_machine_as_test(Cluster, settings=settings(max_examples=25, stateful_step_count=25, deadline=None))
