"""The store's side of a pod: gives it its machine, and takes back all that was given.

A write that failed may have been done all the same, if only its answer was lost. So a pod that is tried again asks for
the same addresses, and first of all whether its machine is there: what an agent may have served stays as it is.
"""

import logging
from collections.abc import Callable, Iterable, Mapping

import msgspec

from contrail_config.errors import ExhaustedError, NotFoundError
from contrail_config.objects import InterfaceAddress, VirtualMachine
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD, AddressRequest, Store
from manager.controller.address_allocator import AddressAllocator
from manager.controller.claims import Claims
from manager.controller.held_ports import HeldPorts
from manager.controller.pod_record import Held, PodRecord, Unfinished
from manager.dependencies import Dependency, DependencyKind, mac_dependency, uid_dependency
from manager.mapping.errors import PodWaitsError
from manager.mapping.interface_resolution import ResolvedInterfaces
from manager.mapping.virtual_machine import address_requests, build_virtual_machine
from manager.reasons import Reason
from manager.source import Pod

log = logging.getLogger(__name__)

Plugged = Callable[[str], bool]
"""Whether any port of the machine of this uuid is plugged."""


class PodWriter:
    """`released` is told the uuids of networks in which addresses came free."""

    def __init__(
        self,
        *,
        cluster: str,
        store: Store,
        desk: AddressAllocator,
        claims: Claims,
        ports: HeldPorts,
        plugged: Plugged,
        released: Callable[[Iterable[str]], None],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._desk = desk
        self._claims = claims
        self._ports = ports
        self._plugged = plugged
        self._released = released

    async def give(self, key: str, pod: Pod, draft: ResolvedInterfaces, record: PodRecord) -> VirtualMachine:
        """Writes the pod's machine and returns it. Raises PodRefusedError and PodWaitsError."""
        self._claim(key, pod, draft)
        answers = await self._allocate(key, pod, draft, record)
        machine = build_virtual_machine(pod, draft.interfaces, answers, cluster=self._cluster)
        record.unfinished = record.unfinished and record.unfinished._replace(sent=True)
        await self._store.put_virtual_machine(machine)
        record.unfinished = None
        record.take_over(machine)
        return machine

    async def find_sent(self, record: PodRecord) -> None:
        """Takes over the machine that was sent, if it is there: its answer was lost, or another manager was first."""
        unfinished = record.unfinished
        if unfinished is None or not unfinished.sent:
            return
        try:
            machine = await self._store.virtual_machine(unfinished.uuid)
        except NotFoundError:
            return
        there = {interface.uuid for interface in machine.interfaces}
        await self._give_back({owner: uuid for owner, uuid in unfinished.owners.items() if owner not in there})
        record.unfinished = None
        record.take_over(machine)
        record.found = machine

    async def find(self, record: PodRecord, held: Held) -> VirtualMachine:
        """Returns what the store holds for the pod, put back if somebody else removed it.

        Raises NotFoundError if it is gone, and cannot be put back as it was.
        """
        lost = record.lost
        if lost is None:
            return record.found or await self._store.virtual_machine(held.uuid)
        try:
            await self._put_back(lost)
        except (NotFoundError, ExhaustedError) as error:
            record.lost = None
            raise NotFoundError(f"machine {lost.name} cannot be put back as it was: {error}") from error
        if record.lost is lost:  # else it was removed again meanwhile
            record.lost = None
        log.warning("machine %s was removed by somebody else: it is put back", lost.name)
        return lost

    async def move(self, machine: VirtualMachine, node: str) -> VirtualMachine:
        """Has the machine served on another node, and returns it: that of a manifest's pods may be renamed."""
        moved = msgspec.structs.replace(machine, node=node)
        await self._store.put_virtual_machine(moved)
        log.info("machine %s is on node %s, no longer on %s", moved.name, node, machine.node)
        return moved

    async def take_back(self, key: str, record: PodRecord) -> None:
        """Frees all that the store holds for the place; what is free already is no error."""
        if record.held is not None:
            await self._delete(record.held, sandbox_ended=record.ended == record.held.uuid)
            record.held = record.found = record.lost = None
        await self.give_back_unfinished(record)
        self._claims.drop(key)

    async def give_back_unfinished(self, record: PodRecord) -> None:
        """Frees addresses of a machine that is not there: nobody ever used them, so nothing is held back."""
        if record.unfinished is not None:
            await self._give_back(record.unfinished.owners)
            record.unfinished = None

    def drop_claims(self, key: str) -> None:
        """Leaves to others what only one pod may have."""
        self._claims.drop(key)

    async def _put_back(self, machine: VirtualMachine) -> None:
        """Writes the machine as it was, whatever its networks have become. Raises NotFoundError and ExhaustedError."""
        borne = [(interface, address) for interface in machine.interfaces for address in interface.addresses]
        requests = [AddressRequest(one.network_uuid, address.family, one.uuid) for one, address in borne]
        answers = await self._store.allocate(requests)
        if [answer.address for answer in answers] != [address.address for _, address in borne]:
            raise NotFoundError("its addresses are not its own any more")
        await self._store.put_virtual_machine(machine)

    async def _allocate(
        self, key: str, pod: Pod, draft: ResolvedInterfaces, record: PodRecord
    ) -> list[tuple[str, InterfaceAddress]]:
        """Asks for addresses: for the same ones where they may have been given before. Raises PodWaitsError."""
        requests = tuple(address_requests(pod.uid, draft.interfaces))
        before = record.unfinished
        if before is not None:
            changed = [request for request in before.requests if request not in requests]
            await self._give_back({request.owner: request.network_uuid for request in changed})
        record.unfinished = Unfinished(pod.uid, requests)
        try:
            return await self._desk.allocate(key, requests, draft.interfaces)
        except PodWaitsError:
            if before is not None:
                await self.give_back_unfinished(record)
            record.unfinished = None  # all or none
            raise

    async def _give_back(self, owners: Mapping[str, str]) -> None:
        """Frees the addresses of these interfaces, each given with its network."""
        if owners:
            await self._store.release(list(owners), hold=0.0)
            self._released(set(owners.values()))

    async def _delete(self, held: Held, *, sandbox_ended: bool) -> None:
        hold = UNPLUGGED_HOLD if not sandbox_ended and self._plugged(held.uuid) else DEFAULT_HOLD
        await self._store.delete_virtual_machine(held.uuid, hold=hold)
        if hold == UNPLUGGED_HOLD:
            await self._await_unplugging(held)
        self._released(set(held.networks))

    async def _await_unplugging(self, held: Held) -> None:
        """Has the hold shortened when the ports are unplugged, which may have happened during the deletion."""
        if self._plugged(held.uuid):
            self._ports.add(zip(held.interfaces, held.networks, strict=True))
        else:
            await self._store.shorten_holds(held.interfaces)

    def _claim(self, key: str, pod: Pod, draft: ResolvedInterfaces) -> None:
        """Claims what only one pod may have. Raises PodWaitsError."""
        macs = [
            mac_dependency(interface.network.uuid, interface.mac) for interface in draft.interfaces if interface.mac
        ]
        conflict = self._claims.claim(key, [uid_dependency(pod.uid), *macs])
        if conflict is not None:
            raise _taken(conflict.need, conflict.holder, draft)


def _taken(need: Dependency, holder: str, draft: ResolvedInterfaces) -> PodWaitsError:
    if need.kind is DependencyKind.UID:
        return PodWaitsError(Reason.UID_TAKEN, f"its uid {need.name} is that of pod {holder} too", need)
    network_uuid, mac = need.name.split()
    network = next(i.network.name for i in draft.interfaces if i.network.uuid == network_uuid)
    return PodWaitsError(Reason.MAC_ADDRESS_TAKEN, f"pod {holder} has MAC {mac} in network {network}", need)
