"""Committer: random concurrent operations of two managers on a slow, contended server return only true results."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from contrail_config.errors import AddressUnavailableError, ExhaustedError, StoreUnavailableError
from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.store import AddressRequest
from tests.contrail_config.kubernetes.managers import LostResponses, SlowContention
from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fake_clock import FakeClock
from tests.support.stored_objects import allocated_addresses
from tests.support.virtual_networks import make_network, new_owner

NETWORKS = [make_network("small", "10.1.0.0/29"), make_network("wide", "10.2.0.0/24"), make_network("six", "fd00::/64")]
REQUESTED = ["10.1.0.3", "10.2.0.3", "10.2.0.65", "fd00::3", "fd00::40"]


class Step(NamedTuple):
    """One operation of an owner: an address in a network, perhaps a specific one; network None releases all."""

    network: int | None
    requested: str | None
    pause: float


STEPS = st.builds(
    Step,
    st.none() | st.integers(0, len(NETWORKS) - 1),
    st.none() | st.sampled_from(REQUESTED),
    st.sampled_from([0.0, 0.0, 0.002, 0.02]),
)
SCRIPTS = st.lists(st.lists(STEPS, min_size=1, max_size=6), min_size=2, max_size=10)


class Owner:
    """Runs operations on one manager, one after the other, and records the results."""

    def __init__(self, manager: KubernetesStore) -> None:
        self.uuid = new_owner()
        self.has: dict[str, str] = {}
        self._manager = manager

    async def ask(self, steps: Sequence[Step]) -> None:
        for step in steps:
            await asyncio.sleep(step.pause)
            while not await self._try(step):
                pass

    async def _try(self, step: Step) -> bool:
        """Returns False if the operation has to be retried."""
        try:
            if step.network is None:
                await self._manager.release([self.uuid], hold=0)
                self.has.clear()
            else:
                await self._take(step.network, step.requested)
        except (AddressUnavailableError, ExhaustedError):
            pass
        except StoreUnavailableError:
            return False
        return True

    async def _take(self, index: int, requested: str | None) -> None:
        network = NETWORKS[index]
        family = 6 if ":" in network.subnets[0].cidr else 4
        (allocated,) = await self._manager.allocate([AddressRequest(network.uuid, family, self.uuid, requested)])
        assert requested in (None, allocated.address)
        assert requested is not None or self.has.get(network.uuid) in (None, allocated.address)
        self.has[network.uuid] = allocated.address


class Leaver(Owner):
    """An owner that releases everything after a failed operation, like a pod that is deleted meanwhile."""

    async def _try(self, step: Step) -> bool:
        return await super()._try(step) or (step.network is not None and await self._leave())

    async def _leave(self) -> bool:
        while not await super()._try(Step(network=None, requested=None, pause=0.0)):
            pass
        return True


async def play(
    server: FakeApiServer, faults: Faults, scripts: Sequence[Sequence[Step]], owner: type[Owner] = Owner
) -> list[Owner]:
    async with AsyncExitStack() as opened:
        client = await opened.enter_async_context(connect(ClientConfig(server.url)))
        await ensure_crds(client)
        managers = [KubernetesStore(client, clock=FakeClock(), flush_interval=0.0) for _ in range(2)]
        for manager in managers:
            opened.push_async_callback(manager.close)
        for network in NETWORKS:
            await managers[0].put_network(network)
        owners = [owner(managers[number % 2]) for number in range(len(scripts))]
        server.faults = faults
        async with asyncio.timeout(60):
            await asyncio.gather(*(owner.ask(steps) for owner, steps in zip(owners, scripts, strict=True)))
        server.faults = Faults()
    return owners


def check(faults: Faults, scripts: list[list[Step]], owner: type[Owner] = Owner) -> None:
    async def run() -> None:
        async with serve_fake_apiserver() as server:
            owners = await play(server, faults, scripts, owner)
            delivered = {(network, address): owner.uuid for owner in owners for network, address in owner.has.items()}
            assert len(delivered) == sum(len(owner.has) for owner in owners)
            assert allocated_addresses(server) == delivered

    asyncio.run(run())


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), scripts=SCRIPTS)
def test_each_owner_has_what_it_was_assigned(seed: int, scripts: list[list[Step]]) -> None:
    check(SlowContention(random.Random(seed)), scripts)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), scripts=SCRIPTS)
def test_an_owner_without_a_response_that_leaves_has_no_address(seed: int, scripts: list[list[Step]]) -> None:
    check(LostResponses(random.Random(seed)), scripts, Leaver)
