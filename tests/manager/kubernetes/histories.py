"""Random histories of a cluster: users and kubelets change it while managers start and crash.

Any history converges: each pod whose networks exist has exactly its interfaces, in order; no address is allocated
twice; nothing remains of deleted objects; and an assignment never changes.
"""

import asyncio
import json
from collections.abc import Awaitable
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from contrail_config.objects import VirtualMachine, VirtualNetwork
from tests.support.cluster_objects import NADS, NETWORKS_KEY, ClusterObjects, holds_interfaces
from tests.support.crashable_manager import CrashableManager
from tests.support.fake_apiserver.kinds import PODS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object

PODS_NAMED = ["p0", "p1", "p2", "p3"]
NADS_NAMED = {"net-a": "10.1.0.0/16", "net-b": "10.2.0.0/24,fd00:2::/64", "tiny": "10.3.0.0/28"}
NETWORKS = ["", "net-a", "net-a,net-a", "net-b,net-a", "tiny,tiny"]
LOOP_STEPS = [0, 1, 5, 20, 60, 200]
"""Event loop iterations: too few for any answer, just enough, or enough for all work."""

T = TypeVar("T")


class ClusterHistory(RuleBasedStateMachine):
    """A history with one manager at a time; a subclass provides its store. Times are of the event loop."""

    deadline = 20.0

    def __init__(self) -> None:
        super().__init__()
        self.runner = self.make_runner()
        self.server = FakeApiServer()
        self.assigned: dict[str, VirtualMachine] = {}

    def make_runner(self) -> asyncio.Runner:
        return asyncio.Runner()

    async def open(self) -> None:
        """Opens the store."""

    async def close(self) -> None:
        """Closes the store."""

    def new_life(self) -> CrashableManager:
        """Returns a manager to be started."""
        raise NotImplementedError

    async def vms(self) -> list[VirtualMachine]:
        """The virtual machines in the store."""
        raise NotImplementedError

    async def networks(self) -> list[VirtualNetwork]:
        raise NotImplementedError

    async def address_owners(self) -> set[str]:
        raise NotImplementedError

    def run(self, awaitable: Awaitable[T]) -> T:
        async def waited() -> T:
            async with asyncio.timeout(self.deadline):
                return await awaitable

        return self.runner.run(waited())

    @initialize()
    def start(self) -> None:
        self.run(self._start())

    async def _start(self) -> None:
        await self.server.start()
        self.objects = ClusterObjects(self.server)
        await self.open()
        self.life = self.new_life()
        await self.life.start()
        while self.objects.definition() is None or "list pods" not in self.server.requests:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.002)

    @rule(name=st.sampled_from(PODS_NAMED), networks=st.sampled_from(NETWORKS), bound=st.booleans())
    def pod_is_created(self, name: str, networks: str, bound: bool) -> None:
        self.pod_is_deleted(name)
        self.objects.add_pod(name, networks=networks, node="node-1" if bound else None)

    @rule(name=st.sampled_from(PODS_NAMED))
    def pod_is_deleted(self, name: str) -> None:
        if name in self.pods():
            self.objects.remove_pod(name)

    @rule(name=st.sampled_from(PODS_NAMED))
    def pod_is_bound(self, name: str) -> None:
        if name in self.pods():
            self.objects.change_pod(name, {"spec": {"nodeName": "node-1"}})

    @rule(name=st.sampled_from(PODS_NAMED))
    def pod_ends(self, name: str) -> None:
        if name in self.pods():
            self.objects.end_pod(name)

    @rule(name=st.sampled_from(sorted(NADS_NAMED)))
    def nad_is_created(self, name: str) -> None:
        if name not in self.nads() and self.objects.definition() is not None:
            self.objects.add_nad(name, cidr=NADS_NAMED[name])

    @rule(name=st.sampled_from(sorted(NADS_NAMED)))
    def nad_is_deleted(self, name: str) -> None:
        if name in self.nads():
            self.objects.remove_nad(name)

    @rule()
    def history_is_compacted(self) -> None:
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
        self.server.faults.reject(code, times=times)

    @rule(steps=st.sampled_from(LOOP_STEPS))
    def time_passes(self, steps: int) -> None:
        async def turn() -> None:
            for _ in range(steps):
                await asyncio.sleep(0)

        self.run(turn())

    @rule(steps=st.sampled_from(LOOP_STEPS))
    def the_manager_crashes(self, steps: int) -> None:
        self.time_passes(steps)
        self.run(self.replace_manager())

    async def replace_manager(self) -> None:
        await self.life.crash()
        self.life = self.new_life()
        await self.life.start()

    @rule()
    def everything_converges(self) -> None:
        self.run(self.converge())

    @invariant()
    def the_manager_lives(self) -> None:
        if hasattr(self, "life"):
            self.run(self.supervise())

    async def supervise(self) -> None:
        """Ensures that a manager is running."""
        self.life.check()

    def teardown(self) -> None:
        try:
            if hasattr(self, "life"):
                self.run(self.converge())
                self.run(self._check_that_everything_is_released())
        finally:
            self.runner.run(self._end())
            self.runner.close()

    async def converge(self) -> None:
        """Returns when the store matches the cluster."""
        reason = ""
        try:
            async with asyncio.timeout(self.deadline / 2):
                while reason := await self.difference():
                    await self.supervise()
                    await asyncio.sleep(0.002)
        except TimeoutError:
            raise AssertionError(reason) from None
        await self._check_assignments()

    async def difference(self) -> str:
        """A difference between store and cluster; empty if there is none."""
        vms = {vm.uuid: vm for vm in await self.vms()}
        live = {pod["metadata"]["uid"]: pod for pod in self.pods().values() if holds_interfaces(pod)}
        if extra := vms.keys() - live.keys():
            return f"virtual machines without pods: {extra}"
        for uid, pod in live.items():
            wanted = [None, *_wanted(pod)]
            if uid not in vms:
                if self.nads().keys() >= {key.partition("/")[2] for key in wanted if key}:
                    return f"not assigned: {pod}"
            elif problem := _mismatch(vms[uid], pod, wanted):
                return problem
        return await self._check_addresses(vms)

    async def _check_addresses(self, vms: dict[str, VirtualMachine]) -> str:
        interfaces = [interface for vm in vms.values() for interface in vm.interfaces]
        if (owners := await self.address_owners()) != {interface.uuid for interface in interfaces}:
            return f"addresses of {owners}, interfaces {interfaces}"
        addresses = [(one.network_uuid, address.address) for one in interfaces for address in one.addresses]
        if len(addresses) != len(set(addresses)):
            return f"duplicate address: {addresses}"
        used = {interface.network_uuid for interface in interfaces}
        for network in await self.networks():
            is_there = network.nad is None or network.nad.partition("/")[2] in self.nads()
            if (not is_there or network.retired) and network.uuid not in used:
                return f"an unused network: {network}"
        return ""

    async def _check_assignments(self) -> None:
        for vm in await self.vms():
            assert self.assigned.setdefault(vm.uuid, vm) == vm

    async def _check_that_everything_is_released(self) -> None:
        self.server.faults.rejections.clear()
        for name in list(self.pods()):
            self.objects.remove_pod(name)
        for name in list(self.nads()):
            self.objects.remove_nad(name)
        await self.converge()
        assert await self.vms() == []
        assert await self.address_owners() == set()
        assert [network.nad for network in await self.networks()] == [None]

    async def _end(self) -> None:
        if hasattr(self, "life"):
            await self.life.crash()
            await self.close()
        await self.server.stop()

    def pods(self) -> dict[str, Object]:
        return {name: pod for (_, name), pod in self.server.storage.objects(PODS).items()}

    def nads(self) -> dict[str, Object]:
        return {name: nad for (_, name), nad in self.server.storage.objects(NADS).items()}


def _wanted(pod: Object) -> list[str]:
    """The NADs of the pod, in order."""
    return [f"blue/{name}" for name in pod["metadata"]["annotations"][NETWORKS_KEY].split(",") if name]


def _mismatch(vm: VirtualMachine, pod: Object, wanted: list[str | None]) -> str:
    if (found := [interface.nad for interface in vm.interfaces]) != wanted:
        return f"interfaces in {found}, not {wanted}"
    status = json.loads(pod["metadata"]["annotations"].get("k8s.v1.cni.cncf.io/network-status", "[]"))
    addresses = [[address.address for address in interface.addresses] for interface in vm.interfaces]
    if [attachment["ips"] for attachment in status] != addresses:
        return f"status {status} of {vm}"
    return ""
