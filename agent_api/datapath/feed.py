"""Feed of the desired state: computed when somebody asks, with pauses in between, and not on requests of ADD.

A change of a virtual machine or port only sets a flag and wakes those who wait. While changes keep coming, those
on other nodes wait for the pause, so it is short where a computation is, and longer where thousands of pods are known.

The version is a digest of the state: equal states have equal versions, also after a restart, so a client that is up to
date gets nothing new.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from agent_api.datapath.desired_state import (
    INDEX_0,
    Computation,
    DesiredNetwork,
    DesiredState,
    Masquerade,
    RoutedNetwork,
    RoutedPort,
)
from agent_api.datapath.fabric import RemoteNode, Tunnel
from agent_api.errors import NotReadyError
from agent_api.waiters import Waiters
from contrail_config.objects import FqName, Refusal

PAUSE = 0.05
"""Seconds from the end of a computation to the next one, at least."""

_PAUSES = 2
"""A pause is at least so many times as long as the computation before: it takes a third of the processor at most."""

_MAX_VERSIONS = 16
"""Versions whose complete networks are known; a report is on the newest version or the one before."""

_ANY = ""  # the waiters wait for any change


class VersionedState(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The desired state and its version, an opaque text."""

    version: str
    networks: tuple[DesiredNetwork, ...]
    routed: tuple[RoutedPort, ...]
    masquerade: Masquerade | None
    fabric_subnets: tuple[str, ...]
    tunnel: Tunnel | None = None
    nodes: tuple[RemoteNode, ...] = ()
    routed_network: RoutedNetwork | None = None


class _Served(NamedTuple):
    version: str
    body: bytes
    computation: Computation


class DesiredStateFeed:
    """`compute` returns the current state, `not_ready_reason` why there is none yet; `pause` is in seconds."""

    def __init__(
        self,
        compute: Callable[[], Computation],
        *,
        not_ready_reason: Callable[[], str | None],
        pause: float = PAUSE,
    ) -> None:
        self.waiters = Waiters()
        self.computations = 0
        self._compute = compute
        self._not_ready_reason = not_ready_reason
        self._pause = pause
        self._is_outdated = True
        self._next_computation = 0.0  # of the monotonic clock
        self._served: _Served | None = None
        self._complete: dict[str, dict[int, str]] = {}  # uuids by number, by version

    def changed(self) -> None:
        """Notes that the state may have changed."""
        self._is_outdated = True
        self.waiters.wake(_ANY)

    async def get(self, *, known: str | None, wait: float) -> bytes:
        """Returns the current `VersionedState` as JSON, as soon as its version is not the known one.

        After `wait` seconds it returns it in any case, or raises NotReadyError if there is none.
        """
        served = await self._current()
        if wait and (served is None or served.version == known):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    while served is None or served.version == known:
                        await self.waiters.wait(_ANY)
                        served = await self._current()
        if served is None:
            raise NotReadyError(self._not_ready_reason() or "datapath: not computed yet")
        return served.body

    @property
    def version(self) -> str | None:
        """The version that was computed last."""
        return None if self._served is None else self._served.version

    @property
    def state(self) -> DesiredState:
        """The state that was computed last; an empty one before."""
        return DesiredState((), (), None) if self._served is None else self._served.computation.state

    @property
    def names(self) -> Mapping[int, FqName]:
        """The names of the networks of the last computation, by VNI."""
        return {} if self._served is None else self._served.computation.names

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """The networks refused by the last computation."""
        return () if self._served is None else self._served.computation.refused

    def complete_in(self, version: str) -> frozenset[int] | None:
        """Returns the networks that were complete in a version, by VNI, 0 for index 0; None if that is not known."""
        complete = self._complete.get(version)
        return None if complete is None else frozenset(complete)

    def forget(self, network_uuid: str) -> frozenset[int]:
        """Notes that the slices of a network are not known any more; returns its numbers in the versions until now.

        When its slices are listed again they may have changed: what a version had of them says nothing of the new ones
        until the state is computed again.
        """
        found = set[int]()
        for version, complete in self._complete.items():
            numbers = {number for number, uuid in complete.items() if uuid == network_uuid}
            self._complete[version] = {number: uuid for number, uuid in complete.items() if number not in numbers}
            found |= numbers
        self.changed()
        return frozenset(found)

    async def _current(self) -> _Served | None:
        if self._not_ready_reason() is not None:
            return None
        if self._is_outdated:
            await asyncio.sleep(max(0.0, self._next_computation - time.monotonic()))
            if self._is_outdated:  # another request may have computed it meanwhile
                self._update()
        return self._served

    def _update(self) -> None:
        self._is_outdated = False
        self.computations += 1
        started = time.monotonic()
        computation = self._compute()
        state = computation.state
        version = hashlib.blake2b(msgspec.json.encode(state), digest_size=16).hexdigest()
        if self._served is None or self._served.computation != computation:
            body = msgspec.json.encode(VersionedState(version, *msgspec.structs.astuple(state)))
            self._served = _Served(version, body, computation)
        # Also of the version that was served: a network of it that was forgotten may be complete again, as it was.
        self._complete.pop(version, None)
        self._complete[version] = _complete_networks(computation)
        if len(self._complete) > _MAX_VERSIONS:
            del self._complete[next(iter(self._complete))]
        ended = time.monotonic()
        self._next_computation = ended + max(self._pause, _PAUSES * (ended - started))


def _complete_networks(computation: Computation) -> dict[int, str]:
    """Returns the uuids of the complete networks by number; empty ones of those that have no slices."""
    state, uuids = computation.state, computation.uuids
    complete = [network.vni for network in state.networks if network.complete]
    if state.routed_network is not None and state.routed_network.complete:
        complete.append(INDEX_0)
    return {number: uuids.get(number, "") for number in complete}
