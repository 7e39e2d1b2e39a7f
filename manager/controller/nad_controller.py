"""Follows NADs: has each settled with the store, and tells the mapping which of them pods can have."""

from collections.abc import Callable

from contrail_config.errors import StoreError
from contrail_config.objects import FqName
from contrail_config.store import Store
from manager.configuration import ManagerConfiguration
from manager.controller.nad_reconciler import NadReconciler
from manager.controller.nad_record import NadRecord
from manager.controller.network_table import NetworkTable
from manager.dependencies import Dependency, nad_dependency, network_dependency
from manager.events import EventRecorder
from manager.mapping.catalogue import Catalogue
from manager.source import Nad
from manager.work_queue import WorkQueue

_AT_ONCE = 16


class NadController:
    """Follows NADs; `wake` has pods tried again that wait for what came."""

    def __init__(
        self,
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        store: Store,
        recorder: EventRecorder,
        wake: Callable[[Dependency], None],
    ) -> None:
        self.queue = WorkQueue(self._work_off, limit=_AT_ONCE, passing=StoreError)
        self.astray = WorkQueue(self._tell_astray, limit=_AT_ONCE)
        self.networks = NetworkTable(store, catalogue.networks, changed=self._network_changed)
        self._settler = NadReconciler(
            configuration=configuration,
            catalogue=catalogue,
            networks=self.networks,
            recorder=recorder,
            look_again=self.astray.add,
        )
        self._default_mtu = configuration.pod_network.mtu
        self._catalogue = catalogue
        self._wake = wake
        self._records: dict[str, NadRecord] = {}
        self._ended: set[str] = set()  # NADs whose end was told, and is not worked off yet

    def apply(self, nad: Nad) -> None:
        """The NAD is there, as the source tells it."""
        before = self._records.get(nad.key)
        if before is None or before.nad != nad:
            ended = nad.key in self._ended
            self._records[nad.key] = NadRecord(nad, before, another_ended=ended, default_mtu=self._default_mtu)
            self.queue.add(nad.key)

    def gone(self, nad: Nad) -> None:
        """The NAD is no more. A successor of the same name is left alone."""
        record = self._records.get(nad.key)
        if record is not None and record.nad.uid == nad.uid:
            del self._records[nad.key]
            self._catalogue.nads.pop(nad.key, None)
            self._ended.add(nad.key)
            self.queue.add(nad.key)

    def sweep(self) -> None:
        """Retires networks of NADs that the source did not tell of: to be called when it told of all."""
        for network in self._catalogue.networks.values():
            key = network.nad
            if key is not None and key not in self._records and self._settler.own_network(key) == network:
                self.queue.add(key)

    async def close(self) -> None:
        """Finishes what was begun and begins no more."""
        await self.queue.close()
        await self.astray.close()

    async def _work_off(self, key: str) -> None:
        record = self._records.get(key)
        if record is None:
            await self._settler.end(key)
            self._ended.discard(key)
            return
        known = await self._settler.settle(key, record)
        if self._records.get(key) is not record:
            return  # it changed meanwhile, and is worked off again
        self._ended.discard(key)
        if self._catalogue.nads.get(key) != known:
            self._catalogue.nads[key] = known
            self._wake(nad_dependency(key))

    async def _tell_astray(self, key: str) -> None:
        """Tells that the network which a NAD refers to is not there: not before other NADs had the time to make it."""
        await self.queue.settled()
        if record := self._records.get(key):
            await self._settler.tell_astray(record)

    def _network_changed(self, name: FqName) -> None:
        self._wake(network_dependency(name))
        for key in self._settler.concerned(name):
            self.queue.add(key)
