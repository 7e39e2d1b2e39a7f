"""Load of many pods with two networks each, and a check of the stored objects once everything is reconciled."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeExistsError, KubeNotFoundError, KubeUnavailableError
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.kinds import ADDRESS_BLOCKS, NAMESPACE_LABEL, VIRTUAL_MACHINES, VIRTUAL_NETWORKS
from contrail_config.kubernetes.node_buckets import node_bucket
from contrail_config.objects import VirtualMachine
from manager.kubernetes.wire import PODS, PodObject
from tests.e2e.kubernetes.namespace_objects import NamespaceObjects
from tests.support.address_blocks import block_entries

NETWORKS_NAMED = {"left": "10.1.0.0/16", "right": "10.2.0.0/16,fd00:2::/64"}
NODE = "node-1"

_AWAY = (KubeUnavailableError, KubeNotFoundError)  # the server or the CRD is unavailable
_AT_ONCE = 20
_DEADLINE = 60.0


class PodLoad:
    """The pods of a namespace. A virtual machine, once seen, must not change while its pod lives.

    `system` may delete virtual machines.
    """

    def __init__(self, client: KubeClient, namespace: str, *, system: KubeClient) -> None:
        self._users = NamespaceObjects(client, namespace)
        self._client = client
        self._system = system
        self.namespace = namespace
        self._seen: dict[str, VirtualMachine] = {}
        self._concurrency = asyncio.Semaphore(_AT_ONCE)

    async def add_networks(self) -> None:
        """Creates the NADs; retries until their CRD exists."""
        for name, cidr in NETWORKS_NAMED.items():
            await _until_done(partial(self._users.add_nad, name, cidr=cidr))

    async def add(self, names: Iterable[str]) -> None:
        """Creates pods bound to a node."""
        await asyncio.gather(*(self._add(name) for name in names))

    async def remove(self, names: Iterable[str]) -> None:
        """Deletes pods without a grace period."""
        await asyncio.gather(*(self._remove(name) for name in names))

    async def recreate(self, names: Iterable[str]) -> None:
        """Deletes and recreates pods, as a StatefulSet does."""
        names = list(names)
        await self.remove(names)
        await self.add(names)

    async def delete_virtual_machines(self) -> None:
        """Deletes the virtual machines of living pods."""
        await asyncio.gather(*(self._delete_virtual_machine(vm) for vm in (await self.virtual_machines()).values()))

    def forget(self) -> None:
        """Forgets the virtual machines seen so far, which then may change."""
        self._seen.clear()

    async def virtual_machines(self) -> dict[str, VirtualMachine]:
        """The stored virtual machines by pod name."""
        found = await self._client.list_all(VIRTUAL_MACHINES, Selector(labels=f"{NAMESPACE_LABEL}={self.namespace}"))
        found = [item for item in found if not item.spec.is_pending]
        machines = {item.spec.pod: item.spec for item in found}
        assert len(machines) == len(found), "two virtual machines of one pod name"
        return machines

    async def look(self) -> int:
        """Records the current virtual machines and returns their number."""
        virtual_machines = await self.virtual_machines()
        for vm in virtual_machines.values():
            self._seen.setdefault(vm.uuid, vm)
        return len(virtual_machines)

    async def served(self, number: int) -> None:
        """Waits until so many pods have a virtual machine."""
        async with asyncio.timeout(_DEADLINE):
            while await self.look() < number:  # noqa: ASYNC110 - other processes are polled
                await asyncio.sleep(0.05)

    async def wait_until_reconciled(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Waits until exactly the expected objects are stored; calls `meanwhile` at each check."""
        problem = "nothing was checked"
        try:
            async with asyncio.timeout(_DEADLINE):
                while problem:
                    await asyncio.sleep(0.1)
                    meanwhile()
                    with contextlib.suppress(*_AWAY):
                        problem = await self._problem()
        except TimeoutError:
            raise AssertionError(problem) from None
        await self._check_that_nothing_changed()

    async def _problem(self) -> str:
        pods = {pod.metadata.name: pod for pod in await self._client.list_all(PODS, Selector(self.namespace))}
        virtual_machines = await self.virtual_machines()
        if wrong := pods.keys() ^ virtual_machines.keys():
            return f"{len(wrong)} of {len(pods)} pods: pod without virtual machine or the reverse: {sorted(wrong)[:5]}"
        for name, vm in virtual_machines.items():
            if problem := _mismatch(pods[name], vm, self.namespace):
                return problem
        return await self._allocation_problem(virtual_machines.values())

    async def _allocation_problem(self, virtual_machines: Iterable[VirtualMachine]) -> str:
        """Describes a difference between the blocks and the virtual machines' addresses; empty without one."""
        used = [
            ((interface.network_uuid, address.address), interface.uuid)
            for vm in virtual_machines
            for interface in vm.interfaces
            for address in interface.addresses
        ]
        assert len(dict(used)) == len(used), "duplicate address"
        allocated = await self._allocated()
        here = {key: owner for key, owner in allocated.items() if owner in {owner for _, owner in used}}
        if here != dict(used):
            return f"{len(used)} addresses are used, {len(here)} are allocated"
        networks = await self._client.list_all(VIRTUAL_NETWORKS)
        own = {one.spec.uuid for one in networks if (one.spec.nad or "").startswith(f"{self.namespace}/")}
        orphaned = [key for key, owner in allocated.items() if key[0] in own and key not in here]
        return f"allocated without a virtual machine: {orphaned[:5]}" if orphaned else ""

    async def _allocated(self) -> dict[tuple[str, str], str]:
        """Owners by network and address."""
        blocks = msgspec.to_builtins(await self._client.list_all(ADDRESS_BLOCKS))
        return {(one.network, one.address): one.owner for one in block_entries(blocks) if one.held is None}

    async def _check_that_nothing_changed(self) -> None:
        for vm in (await self.virtual_machines()).values():
            assert self._seen.setdefault(vm.uuid, vm) == vm

    async def _add(self, name: str) -> None:
        async with self._concurrency:
            with contextlib.suppress(KubeExistsError):  # created, but the response was lost
                await _until_done(partial(self._users.add_pod, name, networks="left,right", node=NODE))

    async def _delete_virtual_machine(self, vm: VirtualMachine) -> None:
        async with self._concurrency:
            with contextlib.suppress(KubeNotFoundError):  # its pod was deleted first
                await self._system.delete(VIRTUAL_MACHINES, vm.uuid, namespace=node_bucket(vm.node))

    async def _remove(self, name: str) -> None:
        async with self._concurrency:
            await _until_done(partial(self._gone, name))

    async def _gone(self, name: str) -> None:
        with contextlib.suppress(KubeNotFoundError):
            await self._users.remove_pod(name)


async def _until_done(work: Callable[[], Awaitable[object]]) -> None:
    """Retries while the server or the CRD is unavailable."""
    async with asyncio.timeout(_DEADLINE):
        while True:
            with contextlib.suppress(*_AWAY):
                await work()
                return
            await asyncio.sleep(0.2)


def _mismatch(pod: PodObject, vm: VirtualMachine, namespace: str) -> str:
    if vm.uuid != pod.metadata.uid:
        return f"{vm.pod}: virtual machine of another pod"
    nads = [interface.nad for interface in vm.interfaces]
    wanted = [None, *(f"{namespace}/{name}" for name in NETWORKS_NAMED)]
    return "" if nads == wanted else f"{vm.pod}: interfaces in {nads}"
