"""Random histories of a cluster with one manager at a time and an embedded store."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine, VirtualNetwork
from tests.manager.kubernetes.histories import ClusterHistory
from tests.support.crashable_manager import CrashableManager


class WithEmbeddedStore(ClusterHistory):
    """The store outlives managers."""

    async def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = await SqliteStore.open(Path(self.folder.name) / "config.db")

    async def close(self) -> None:
        await self.store.close()
        self.folder.cleanup()

    def new_life(self) -> CrashableManager:
        return CrashableManager(self.server, self.store)

    async def vms(self) -> list[VirtualMachine]:
        return await self.store.virtual_machines()

    async def networks(self) -> list[VirtualNetwork]:
        return await self.store.networks()

    async def address_owners(self) -> set[str]:
        return await self.store.address_owners()


def test_any_history_converges() -> None:
    run_state_machine_as_test(WithEmbeddedStore, settings=settings(max_examples=25, stateful_step_count=25))
