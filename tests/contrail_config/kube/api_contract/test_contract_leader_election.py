"""Leader election: the server accepts the Lease, and the next candidate can acquire it."""

from typing import Any

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.leader_election import LEASES, LeaderElection, LeaseTimings
from contrail_config.kube.resource import Metadata, Resource
from tests.support.recorded_reflector import eventually

QUICK = LeaseTimings(duration=3.0, renew_deadline=2.0, retry_period=0.1)


class WholeLease(msgspec.Struct, frozen=True):
    """A lease with all its fields."""

    metadata: Metadata
    spec: dict[str, Any]


WHOLE = Resource(LEASES.group, LEASES.version, LEASES.kind, LEASES.plural, WholeLease)


def election(client: KubeClient, namespace: str, identity: str) -> LeaderElection:
    return LeaderElection(client, namespace=namespace, name="manager", identity=identity, timings=QUICK)


async def spec(client: KubeClient, namespace: str) -> dict[str, Any]:
    return (await client.get(WHOLE, "manager", namespace=namespace)).spec


async def test_the_lease_names_the_leader(client: KubeClient, namespace: str) -> None:
    async with election(client, namespace, "first").lead() as leadership:
        leadership.check()
        first = await spec(client, namespace)
        assert (first["holderIdentity"], first["leaseDurationSeconds"]) == ("first", 3)
        until = leadership.until
        await eventually(lambda: leadership.until > until)
        renewed = await spec(client, namespace)
        assert renewed["renewTime"] > first["renewTime"]
        assert renewed["acquireTime"] == first["acquireTime"]


async def test_the_next_candidate_leads_after_a_release(client: KubeClient, namespace: str) -> None:
    async with election(client, namespace, "first").lead():
        pass
    assert "holderIdentity" not in await spec(client, namespace)
    async with election(client, namespace, "second").lead():
        taken = await spec(client, namespace)
    assert (taken["holderIdentity"], taken["leaseTransitions"]) == ("second", 1)


async def test_an_expired_lease_of_another_process_can_be_acquired(client: KubeClient, namespace: str) -> None:
    created = {"holderIdentity": "killed", "leaseDurationSeconds": 1, "renewTime": "2026-11-21T10:00:00.000000Z"}
    await client.create(LEASES, {"metadata": {"name": "manager"}, "spec": created}, namespace=namespace)
    async with election(client, namespace, "second").lead():
        assert (await spec(client, namespace))["holderIdentity"] == "second"
