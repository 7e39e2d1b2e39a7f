"""Random histories of a cluster in which managers take over from each other or run in parallel; their store is in it.

At every moment, whichever manager writes: no address belongs to two live pods, a live pod's addresses are allocated to
it, and its assignment never changes.
"""

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from contrail_config.objects import VirtualMachine, VirtualNetwork
from tests.manager.kubernetes.histories import LOOP_STEPS, PODS_NAMED, ClusterHistory
from tests.support.address_auditor import AddressAuditor
from tests.support.crashable_manager import CrashableManager
from tests.support.fast_event_loop import FastLoop
from tests.support.stored_objects import (
    BLOCK_KIND,
    allocated_addresses,
    remove_virtual_machine,
    stored_networks,
    stored_virtual_machines,
)


class WithKubernetesStore(ClusterHistory):
    """`rival`: a second manager that leads too; `had_rival`: there was one since the last cleanup."""

    deadline = 200.0

    def __init__(self) -> None:
        super().__init__()
        self.rival: CrashableManager | None = None
        self.had_rival = False

    def make_runner(self) -> asyncio.Runner:
        return asyncio.Runner(loop_factory=FastLoop)

    async def open(self) -> None:
        self.auditor = AddressAuditor(self.server)

    async def close(self) -> None:
        await self._stop_rival()

    def new_life(self) -> CrashableManager:
        return CrashableManager(self.server)

    async def vms(self) -> list[VirtualMachine]:
        return list(stored_virtual_machines(self.server).values())

    async def networks(self) -> list[VirtualNetwork]:
        return list(stored_networks(self.server).values())

    async def address_owners(self) -> set[str]:
        return set(allocated_addresses(self.server).values())

    @rule()
    def a_second_manager_leads_too(self) -> None:
        if self.rival is None:
            self.rival = self.new_life()
            self.had_rival = True
            self.run(self.rival.start())

    @rule(steps=st.sampled_from(LOOP_STEPS))
    def the_second_manager_crashes(self, steps: int) -> None:
        self.time_passes(steps)
        self.run(self._stop_rival())

    @rule(steps=st.sampled_from(LOOP_STEPS))
    def the_second_manager_takes_over(self, steps: int) -> None:
        if self.rival is not None:
            self.time_passes(steps)
            self.life, self.rival = self.rival, self.life
            self.run(self._stop_rival())

    @rule(name=st.sampled_from(PODS_NAMED))
    def somebody_deletes_a_virtual_machine(self, name: str) -> None:
        """A manager that sees it in time restores it unchanged; otherwise a new one may be created."""
        vm = next((one for one in stored_virtual_machines(self.server).values() if one.pod == name), None)
        if vm is not None:
            remove_virtual_machine(self.server, name)
            self.assigned.pop(vm.uuid, None)
            self.auditor.forget(vm)

    @rule()
    def somebody_deletes_the_address_blocks(self) -> None:
        """Managers end, and the next one recovers the addresses from the virtual machines."""
        self.auditor.blocks_are_missing = True
        for _, name in list(self.server.storage.objects(BLOCK_KIND)):
            self.server.remove(BLOCK_KIND, name, namespace="")

    @rule(times=st.integers(1, 3))
    def answers_are_lost(self, times: int) -> None:
        self.server.faults.lost_responses = times

    @invariant()
    def the_auditor_found_nothing(self) -> None:
        if hasattr(self, "auditor"):
            assert self.auditor.findings == []

    async def converge(self) -> None:
        """After two managers ran in parallel and one crashed, the next start cleans up."""
        if self.had_rival and self.rival is None:
            await self.replace_manager()
            self.had_rival = False
        await super().converge()
        self.auditor.blocks_are_missing = False

    async def supervise(self) -> None:
        """Replaces a manager that gave up."""
        if self.life.gave_up:
            await self.replace_manager()
        if self.rival is not None and self.rival.gave_up:
            await self._stop_rival()
        for life in (self.life, self.rival):
            if life is not None and not life.gave_up:
                life.check()

    async def _stop_rival(self) -> None:
        rival, self.rival = self.rival, None
        if rival is not None:
            await rival.crash()


def test_any_history_converges() -> None:
    run_state_machine_as_test(WithKubernetesStore, settings=settings(max_examples=30, stateful_step_count=25))
