"""The store's side of a pod: gives it its machine, and takes back all that was given."""

from collections.abc import Callable, Iterable

from contrail_config.objects import VirtualMachine
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD, Store
from manager.controller.address_desk import AddressDesk
from manager.controller.claims import Claims
from manager.controller.held_ports import HeldPorts
from manager.controller.record import Held, PodRecord
from manager.mapping.drafts import PodDraft
from manager.mapping.errors import PodWaitsError
from manager.mapping.machine import address_requests, build_machine
from manager.needs import Need, NeedKind, mac_need, uid_need
from manager.reasons import Reason
from manager.source import Pod

Plugged = Callable[[str], bool]
"""Whether any port of the machine of this uuid is plugged."""


class PodWriter:
    """`released` is told the uuids of networks in which addresses came free."""

    def __init__(
        self,
        *,
        cluster: str,
        store: Store,
        desk: AddressDesk,
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

    async def give(self, key: str, pod: Pod, draft: PodDraft, record: PodRecord) -> VirtualMachine:
        """Writes the pod's machine and returns it. Raises PodRefusedError and PodWaitsError."""
        self._claim(key, pod, draft)
        await self.give_back_unfinished(record)
        requests = address_requests(pod.uid, draft.interfaces)
        record.unfinished = tuple(requests)
        try:
            answers = await self._desk.allocate(key, requests, draft.interfaces)
        except PodWaitsError:
            record.unfinished = ()  # all or none
            raise
        machine = build_machine(pod, draft.interfaces, answers, cluster=self._cluster)
        await self._store.put_machine(machine)
        record.unfinished = ()
        record.take_over(machine)
        return machine

    async def take_back(self, key: str, record: PodRecord) -> None:
        """Frees all that the store holds for the place; what is free already is no error."""
        if record.held is not None:
            await self._delete(record.held)
            record.held = record.found = None
        await self.give_back_unfinished(record)
        self._claims.drop(key)

    async def give_back_unfinished(self, record: PodRecord) -> None:
        """Frees addresses of a machine that was never written: nobody ever used them, so nothing is held back."""
        if record.unfinished:
            await self._store.release(list({request.owner for request in record.unfinished}), hold=0.0)
            networks = {request.network_uuid for request in record.unfinished}
            record.unfinished = ()
            self._released(networks)

    async def _delete(self, held: Held) -> None:
        hold = UNPLUGGED_HOLD if self._plugged(held.uuid) else DEFAULT_HOLD
        await self._store.delete_machine(held.uuid, hold=hold)
        if hold == UNPLUGGED_HOLD:
            await self._await_unplugging(held)
        self._released(set(held.networks))

    async def _await_unplugging(self, held: Held) -> None:
        """Has the hold shortened when the ports are unplugged, which may have happened during the deletion."""
        if self._plugged(held.uuid):
            self._ports.add(zip(held.interfaces, held.networks, strict=True))
        else:
            await self._store.release(held.interfaces)

    def _claim(self, key: str, pod: Pod, draft: PodDraft) -> None:
        """Claims what only one pod may have. Raises PodWaitsError."""
        macs = [mac_need(interface.network.uuid, interface.mac) for interface in draft.interfaces if interface.mac]
        conflict = self._claims.claim(key, [uid_need(pod.uid), *macs])
        if conflict is not None:
            raise _taken(conflict.need, conflict.holder, draft)


def _taken(need: Need, holder: str, draft: PodDraft) -> PodWaitsError:
    if need.kind is NeedKind.UID:
        return PodWaitsError(Reason.UID_TAKEN, f"its uid {need.name} is that of pod {holder} too", need)
    network_uuid, mac = need.name.split()
    network = next(i.network.name for i in draft.interfaces if i.network.uuid == network_uuid)
    return PodWaitsError(Reason.MAC_ADDRESS_TAKEN, f"pod {holder} has MAC {mac} in network {network}", need)
