"""Leader election on a Lease (`coordination.k8s.io/v1`): one of several managers writes at a time.

The leader renews its lease every 2 s and stops 10 s after it began its last successful renewal; a candidate takes over
a lease that has not changed for 15 s. Each process measures both on its own monotonic clock, so skewed or jumping wall
clocks do no harm; the timestamps in the Lease are for people. A write that begins at the last moment ends within the 5
s in between, done or not: both client and server time it out.

This is no mutual exclusion. A process that was suspended may have a write in flight, and deleting the Lease lets
another candidate lead at once. Uniqueness is enforced by the writes themselves.
"""

import asyncio
import contextlib
import logging
import math
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import (
    KubeConflictError,
    KubeError,
    KubeExistsError,
    KubeLeadershipLostError,
    KubeNotFoundError,
)
from contrail_config.kube.rate_limited_warning import RateLimitedWarning
from contrail_config.kube.resource import Metadata, Resource

log = logging.getLogger(__name__)

_RELEASE_DEADLINE = 2.0  # seconds; a service that stops has little more time


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The holder, and the seconds for which it holds the lease after each change."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    lease_transitions: int = 0


class Lease(msgspec.Struct, frozen=True):
    """The fields of a Lease that are read."""

    metadata: Metadata
    spec: LeaseSpec = LeaseSpec()


LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", Lease)


class LeaseTimings(msgspec.Struct, frozen=True):
    """Seconds that candidates wait for, after which the leader stops without a renewal, and between two attempts."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class Leadership:
    """Fence for writes of the leader, which call `check` first. `until`: its end, on the event loop's clock.

    `grace`: seconds after `until` in which no other process leads yet.
    """

    def __init__(self, name: str, *, grace: float) -> None:
        self._name = name
        self._grace = grace
        self.until = 0.0

    def check(self) -> float:
        """Returns the seconds that a write may take. Raises KubeLeadershipLostError if this process does not lead."""
        left = self.until - asyncio.get_running_loop().time()
        if left <= 0:
            raise KubeLeadershipLostError(f"lease {self._name}: not held, or not renewed in time")
        return left + self._grace


class LeaderElection:
    """One candidate. No two living processes may have the same `identity`: see `candidate_identity`.

    A lease in its own name is taken back at once, since the process that wrote it is dead.
    """

    def __init__(
        self, client: KubeClient, *, namespace: str, name: str, identity: str, timings: LeaseTimings | None = None
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._timings = timings or LeaseTimings()
        self._held: Lease | None = None  # as this process wrote it
        self._may_hold = False  # also after a write of unknown outcome
        self._warning = RateLimitedWarning(f"lease {name}")
        self._observed: tuple[str, float] = ("", 0.0)  # resourceVersion of another holder's last write, first seen at
        self.leadership = Leadership(name, grace=self._timings.duration - self._timings.renew_deadline)
        self.holder = ""
        """Identity of the holder when the lease was last read, empty if there was none."""
        self._reason = ""  # why the last attempt could not read or write the lease

    @property
    def problem(self) -> str | None:
        """Why the last attempt could not read or write the lease, None if it could."""
        return f"lease {self._name}: {self._reason}" if self._reason else None

    @contextlib.asynccontextmanager
    async def lead(self) -> AsyncIterator[Leadership]:
        """Waits until this process leads; releases the lease on exit, also if the wait is cancelled.

        Cancels the body and raises KubeLeadershipLostError if the lease is lost.
        """
        try:
            await self._acquire()
            log.info("lease %s: %s is the leader", self._name, self._identity)
            async with self._while_held():
                yield self.leadership
        finally:
            self.leadership.until = 0.0
            if self._may_hold:
                await self._release()

    @contextlib.asynccontextmanager
    async def _while_held(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(self.leadership.until) as limit:
                async with self._renewing(limit):
                    yield
        except TimeoutError as error:
            if not limit.expired():
                raise  # a TimeoutError of the body, not ours
            reason = f": {self._reason}" if self._reason else ""
            raise KubeLeadershipLostError(f"lease {self._name}: lost{reason}") from error

    async def _acquire(self) -> None:
        while True:
            if await self._try_acquire_or_renew():
                return
            # jitter: candidates that see a lease expire at the same time must not all write at once
            await asyncio.sleep(self._timings.retry_period * random.uniform(1.0, 1.2))  # noqa: S311 - not a secret

    @contextlib.asynccontextmanager
    async def _renewing(self, limit: asyncio.Timeout) -> AsyncIterator[None]:
        task = asyncio.create_task(self._renew(limit))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _renew(self, limit: asyncio.Timeout) -> None:
        while not limit.expired():  # an expired timeout cannot be rescheduled
            limit.reschedule(self.leadership.until)
            await asyncio.sleep(self._timings.retry_period)
            await self._try_acquire_or_renew()

    async def _try_acquire_or_renew(self) -> bool:
        """Returns whether the lease is held for certain, and updates `leadership.until`."""
        # counted from before the request: the server may apply a write long before its response arrives
        began = asyncio.get_running_loop().time()
        # a failed renewal may still have been applied: the next attempt reads the lease instead of reusing this one
        held, self._held = self._held, None
        try:
            async with asyncio.timeout(self._timings.renew_deadline / 2):  # leaves time for a second attempt
                self._held = await self._acquire_or_renew(held)
        except (KubeConflictError, KubeExistsError) as error:
            log.info("lease %s: another process wrote it first: %s", self._name, error)
            self._set_reason("")
            return False
        except (KubeError, TimeoutError) as error:
            self._set_reason(str(error) or "timed out")
            return False
        self._set_reason("")
        self.leadership.until = began + self._timings.renew_deadline if self._held else 0.0
        return self._held is not None

    def _set_reason(self, reason: str) -> None:
        self._reason = reason
        if reason:
            self._warning.warn(reason)
        else:
            self._warning.clear()

    async def _acquire_or_renew(self, held: Lease | None) -> Lease | None:
        """Returns the lease as this process wrote it, None if another process holds it."""
        lease = held or await self._read()
        if lease is None:
            self._may_hold = True  # before the request: its response may be lost
            body = {"metadata": {"name": self._name}, "spec": self._spec(acquired=True)}
            return await self._client.create(LEASES, body, namespace=self._namespace)
        self.holder = lease.spec.holder_identity
        if not self._is_available(lease):
            return None
        self._may_hold = True
        acquired = lease.spec.holder_identity != self._identity
        transitions = lease.spec.lease_transitions + acquired
        return await self._write(lease, {**self._spec(acquired=acquired), "leaseTransitions": transitions})

    async def _read(self) -> Lease | None:
        try:
            return await self._client.get(LEASES, self._name, namespace=self._namespace)
        except KubeNotFoundError:
            return None

    async def _write(self, lease: Lease, spec: dict[str, Any]) -> Lease:
        """Updates the lease. Raises KubeConflictError if it changed since it was read."""
        patch = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        return await self._client.patch(LEASES, self._name, patch, namespace=self._namespace)

    def _is_available(self, lease: Lease) -> bool:
        if lease.spec.holder_identity in ("", self._identity):
            return True
        # renewTime is not compared: it is from the holder's wall clock
        now = asyncio.get_running_loop().time()
        if lease.metadata.resource_version != self._observed[0]:
            self._observed = lease.metadata.resource_version, now
        return now - self._observed[1] >= lease.spec.lease_duration_seconds

    def _spec(self, *, acquired: bool) -> dict[str, Any]:
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        spec = {"holderIdentity": self._identity, "leaseDurationSeconds": math.ceil(self._timings.duration)}
        return spec | {"renewTime": now} | ({"acquireTime": now} if acquired else {})

    async def _release(self) -> None:
        """Lets other candidates lead at once. Best effort: the lease expires anyway."""
        self._held, self._may_hold = None, False
        try:
            async with asyncio.timeout(_RELEASE_DEADLINE):
                lease = await self._read()
                if lease is not None and lease.spec.holder_identity == self._identity:
                    # as client-go's ReleaseOnCancel; the API rejects a duration of 0
                    await self._write(lease, {"holderIdentity": None, "leaseDurationSeconds": 1})
        except (KubeError, TimeoutError) as error:
            log.warning("lease %s: cannot be released: %s", self._name, str(error) or "timed out")
