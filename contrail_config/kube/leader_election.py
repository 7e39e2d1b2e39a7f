"""Leader election on a Lease (`coordination.k8s.io/v1`), so that one of several managers writes.

The leader renews its lease every two seconds, and stops ten seconds after it began the last renewal that succeeded;
others wait for fifteen seconds in which the lease does not change. Each process counts both on its own monotonic clock,
so wrong or jumping clocks do no harm, and what is in the Lease is for people to read. A write that was begun in the
last moment ends within the five seconds between, done or not: neither we nor the server go on with it for longer.

Not promised: that no two processes ever write at one moment. A machine that stood still may have a write under way, and
who deletes the Lease lets another one lead at once. What must be unique is kept so by the writes themselves.
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

_RELEASE_DEADLINE = 2.0  # a service that stops has not much longer


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Who holds it, and for how many seconds after each change."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    lease_transitions: int = 0


class Lease(msgspec.Struct, frozen=True):
    """What is read of a Lease."""

    metadata: Metadata
    spec: LeaseSpec = LeaseSpec()


LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", Lease)


class LeaseTimes(msgspec.Struct, frozen=True):
    """Seconds: for which others wait, after which the leader stops, and between tries."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0


class Leadership:
    """What writers ask before each write. `until`: the moment of the event loop's clock at which it ends.

    `grace`: seconds from then on in which no other process leads yet.
    """

    def __init__(self, name: str, *, grace: float) -> None:
        self._name = name
        self._grace = grace
        self.until = 0.0

    def check(self) -> float:
        """Returns the seconds that a write may take. Raises KubeLeadershipLostError if none may be begun (any more)."""
        left = self.until - asyncio.get_running_loop().time()
        if left <= 0:
            raise KubeLeadershipLostError(f"lease {self._name} is not held, or was not renewed in time")
        return left + self._grace


class LeaderElection:
    """Takes part for one process, whose `identity` no other one has, not even its own successor."""

    def __init__(
        self, client: KubeClient, *, namespace: str, name: str, identity: str, times: LeaseTimes | None = None
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._times = times or LeaseTimes()
        self._held: Lease | None = None  # as this process wrote it
        self._claimed = False  # whether it may be this process's, as what was begun may have been done
        self._complaint = RateLimitedWarning(f"lease {name}")
        self._seen: tuple[str, float] = ("", 0.0)  # the version that others wrote last, and when it was first seen
        self.leadership = Leadership(name, grace=self._times.duration - self._times.renew_deadline)
        self.holder = ""
        """Identity of who had the lease when it was last read, empty if nobody had."""
        self.problem: str | None = None
        """Why it could not be read or written when that was last tried, None if it could."""

    @contextlib.asynccontextmanager
    async def lead(self) -> AsyncIterator[Leadership]:
        """Waits until this process leads, and lets others lead when the context is left, or the wait is cancelled.

        If the lease is lost meanwhile, the body is cancelled and KubeLeadershipLostError raised.
        """
        try:
            await self._wait_for_lead()
            log.info("%s leads by lease %s", self._identity, self._name)
            async with self._while_held():
                yield self.leadership
        finally:
            self.leadership.until = 0.0
            if self._claimed:
                await self._release()

    @contextlib.asynccontextmanager
    async def _while_held(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(self.leadership.until) as limit:
                async with self._renewing(limit):
                    yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise KubeLeadershipLostError(f"lease {self._name} was lost") from error

    async def _wait_for_lead(self) -> None:
        while True:
            if await self._try():
                return
            await asyncio.sleep(self._times.retry * random.uniform(1.0, 1.2))  # noqa: S311 - jitter

    @contextlib.asynccontextmanager
    async def _renewing(self, limit: asyncio.Timeout) -> AsyncIterator[None]:
        task = asyncio.create_task(self._renew(limit))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _renew(self, limit: asyncio.Timeout) -> None:
        while not limit.expired():
            limit.reschedule(self.leadership.until)
            await asyncio.sleep(self._times.retry)
            await self._try()

    async def _try(self) -> bool:
        """Takes or renews the lease if it may. False if not, or if it is not known; `until` is changed accordingly."""
        begun = asyncio.get_running_loop().time()
        held, self._held = self._held, None
        try:
            async with asyncio.timeout(self._times.renew_deadline / 2):
                self._held = await self._claim(held)
        except (KubeConflictError, KubeExistsError) as error:
            log.info("lease %s: somebody else was faster: %s", self._name, error)
            self._note(None)
            return False
        except (KubeError, TimeoutError) as error:
            self._note(str(error) or "no answer in time")
            return False
        self._note(None)
        self.leadership.until = begun + self._times.renew_deadline if self._held else 0.0
        return self._held is not None

    def _note(self, trouble: str | None) -> None:
        """Why the lease could not be read or written, None if it could."""
        if trouble is None:
            self.problem = None
            self._complaint.end()
        else:
            self.problem = f"lease {self._name}: {trouble}"
            self._complaint.go_on(trouble)

    async def _claim(self, held: Lease | None) -> Lease | None:
        """Returns the lease as this process wrote it, None if another one has it."""
        lease = held or await self._read()
        if lease is None:
            self._claimed = True
            body = {"metadata": {"name": self._name}, "spec": self._spec(taken=True)}
            return await self._client.create(LEASES, body, namespace=self._namespace)
        self.holder = lease.spec.holder_identity
        if not self._is_free(lease):
            return None
        self._claimed = True
        taken = lease.spec.holder_identity != self._identity
        transitions = lease.spec.lease_transitions + taken
        return await self._write(lease, {**self._spec(taken=taken), "leaseTransitions": transitions})

    async def _read(self) -> Lease | None:
        try:
            return await self._client.get(LEASES, self._name, namespace=self._namespace)
        except KubeNotFoundError:
            return None

    async def _write(self, lease: Lease, spec: dict[str, Any]) -> Lease:
        """Changes the lease if nobody changed it meanwhile."""
        patch = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        return await self._client.patch(LEASES, self._name, patch, namespace=self._namespace)

    def _is_free(self, lease: Lease) -> bool:
        if lease.spec.holder_identity in ("", self._identity):
            return True
        now = asyncio.get_running_loop().time()
        if lease.metadata.resource_version != self._seen[0]:
            self._seen = lease.metadata.resource_version, now
        return now - self._seen[1] >= lease.spec.lease_duration_seconds

    def _spec(self, *, taken: bool) -> dict[str, Any]:
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        spec = {"holderIdentity": self._identity, "leaseDurationSeconds": math.ceil(self._times.duration)}
        return spec | {"renewTime": now} | ({"acquireTime": now} if taken else {})

    async def _release(self) -> None:
        """Lets others lead at once; what fails is left, since the lease runs out by itself."""
        self._held, self._claimed = None, False
        try:
            async with asyncio.timeout(_RELEASE_DEADLINE):
                lease = await self._read()
                if lease is not None and lease.spec.holder_identity == self._identity:
                    await self._write(lease, {"holderIdentity": None, "leaseDurationSeconds": 1})
        except (KubeError, TimeoutError) as error:
            log.warning("lease %s is not released: %s", self._name, str(error) or "no answer in time")
