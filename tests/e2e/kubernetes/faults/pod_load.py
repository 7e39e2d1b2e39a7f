"""Many pods with two networks each, and what has to be kept for them when everything has come to rest."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeExistsError, KubeNotFoundError, KubeUnavailableError
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.kinds import ADDRESS_BLOCKS, VIRTUAL_MACHINES, VIRTUAL_NETWORKS
from contrail_config.objects import VirtualMachine
from manager.kubernetes.wire import PODS, PodObject
from tests.e2e.kubernetes.namespace_objects import NamespaceObjects
from tests.support.address_blocks import block_entries

NETWORKS_NAMED = {"left": "10.1.0.0/16", "right": "10.2.0.0/16,fd00:2::/64"}
NODE = "node-1"

_AWAY = (KubeUnavailableError, KubeNotFoundError)  # the server, or the kind that was asked for
_AT_ONCE = 20
_DEADLINE = 60.0


class PodLoad:
    """The pods of a namespace. What was seen of a pod's machine must not change as long as the pod lives."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self._users = NamespaceObjects(client, namespace)
        self._client = client
        self._namespace = namespace
        self._seen: dict[str, VirtualMachine] = {}
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def add_networks(self) -> None:
        """Makes the networks, as soon as there can be any."""
        for name, cidr in NETWORKS_NAMED.items():
            await _until_done(partial(self._users.add_nad, name, cidr=cidr))

    async def add(self, names: Iterable[str]) -> None:
        """Makes pods, bound to a node."""
        await asyncio.gather(*(self._add(name) for name in names))

    async def remove(self, names: Iterable[str]) -> None:
        """Deletes pods of which nothing is left on their node."""
        await asyncio.gather(*(self._remove(name) for name in names))

    async def recreate(self, names: Iterable[str]) -> None:
        """Makes pods anew under the same names, as a StatefulSet does."""
        names = list(names)
        await self.remove(names)
        await self.add(names)

    async def delete_virtual_machines(self) -> None:
        """Somebody deletes the virtual_machines, while the pods live."""
        await asyncio.gather(*(self._delete_virtual_machine(name) for name in await self.virtual_machines()))

    def forget(self) -> None:
        """What was seen of the pods' virtual_machines need not come again."""
        self._seen.clear()

    async def virtual_machines(self) -> dict[str, VirtualMachine]:
        """Those that are kept now, by the names of their pods."""
        found = await self._client.list_all(VIRTUAL_MACHINES, Selector(self._namespace))
        return {item.metadata.name: item.spec for item in found}

    async def look(self) -> int:
        """Notes which pods are served by now, and returns how many."""
        virtual_machines = await self.virtual_machines()
        for vm in virtual_machines.values():
            self._seen.setdefault(vm.uuid, vm)
        return len(virtual_machines)

    async def served(self, number: int) -> None:
        """Returns when so many pods are served."""
        async with asyncio.timeout(_DEADLINE):
            while await self.look() < number:  # noqa: ASYNC110 - other processes tell no event
                await asyncio.sleep(0.05)

    async def comes_to_rest(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Returns when all is kept that should be, and nothing else; `meanwhile` is called again and again."""
        problem = "nothing was looked at"
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
        pods = {pod.metadata.name: pod for pod in await self._client.list_all(PODS, Selector(self._namespace))}
        virtual_machines = await self.virtual_machines()
        if wrong := pods.keys() ^ virtual_machines.keys():
            return f"{len(wrong)} of {len(pods)} pods: pod without machine, or machine without pod: {sorted(wrong)[:5]}"
        for name, vm in virtual_machines.items():
            if problem := _misfit(pods[name], vm, self._namespace):
                return problem
        return await self._misgiven(virtual_machines.values())

    async def _misgiven(self, virtual_machines: Iterable[VirtualMachine]) -> str:
        """Whether the networks' blocks hold anything but the virtual_machines' addresses."""
        borne = [
            ((interface.network_uuid, address.address), interface.uuid)
            for vm in virtual_machines
            for interface in vm.interfaces
            for address in interface.addresses
        ]
        assert len(dict(borne)) == len(borne), "an address twice"
        given = await self._given()
        here = {place: owner for place, owner in given.items() if owner in {owner for _, owner in borne}}
        if here != dict(borne):
            return f"{len(borne)} addresses are borne, {len(here)} are given"
        networks = await self._client.list_all(VIRTUAL_NETWORKS)
        own = {one.spec.uuid for one in networks if (one.spec.nad or "").startswith(f"{self._namespace}/")}
        strays = [place for place, owner in given.items() if place[0] in own and place not in here]
        return f"given to nobody: {strays[:5]}" if strays else ""

    async def _given(self) -> dict[tuple[str, str], str]:
        """Owners by network and address."""
        blocks = msgspec.to_builtins(await self._client.list_all(ADDRESS_BLOCKS))
        return {(one.network, one.address): one.owner for one in block_entries(blocks) if one.held is None}

    async def _check_that_nothing_changed(self) -> None:
        for vm in (await self.virtual_machines()).values():
            assert self._seen.setdefault(vm.uuid, vm) == vm

    async def _add(self, name: str) -> None:
        async with self._turn:
            with contextlib.suppress(KubeExistsError):  # an answer was lost
                await _until_done(partial(self._users.add_pod, name, networks="left,right", node=NODE))

    async def _delete_virtual_machine(self, name: str) -> None:
        async with self._turn:
            with contextlib.suppress(KubeNotFoundError):  # its pod went first
                await self._client.delete(VIRTUAL_MACHINES, name, namespace=self._namespace)

    async def _remove(self, name: str) -> None:
        async with self._turn:
            await _until_done(partial(self._gone, name))

    async def _gone(self, name: str) -> None:
        with contextlib.suppress(KubeNotFoundError):
            await self._users.remove_pod(name)


async def _until_done(work: Callable[[], Awaitable[object]]) -> None:
    """Does it again and again while the server or the kind is away."""
    async with asyncio.timeout(_DEADLINE):
        while True:
            with contextlib.suppress(*_AWAY):
                await work()
                return
            await asyncio.sleep(0.2)


def _misfit(pod: PodObject, vm: VirtualMachine, namespace: str) -> str:
    if vm.uuid != pod.metadata.uid:
        return f"{vm.pod}: the machine of another pod"
    nads = [interface.nad for interface in vm.interfaces]
    wanted = [None, *(f"{namespace}/{name}" for name in NETWORKS_NAMED)]
    return "" if nads == wanted else f"{vm.pod}: interfaces in {nads}"
