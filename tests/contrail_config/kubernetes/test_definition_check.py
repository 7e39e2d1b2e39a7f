"""Definitions of an older release are detected: the server would prune the fields that they miss."""

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kubernetes.crds import crds, ensure_crds
from contrail_config.kubernetes.definition_check import DefinitionCheck, missing_fields
from tests.support.apiservers import API_SERVERS
from tests.support.custom_kinds import DEFINITIONS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.next_release import next_definition

NETWORKS = "virtualnetworks.opencontrail.org"


@pytest.fixture(params=API_SERVERS)
async def client(request: pytest.FixtureRequest) -> AsyncIterator[KubeClient]:
    async with API_SERVERS[request.param]() as access, connect(access) as client:
        await ensure_crds(client)
        yield client
        await apply(client, crds()[NETWORKS])


async def apply(client: KubeClient, definition: dict[str, Any]) -> None:
    await client.patch(
        DEFINITIONS, definition["metadata"]["name"], {"spec": {"versions": definition["spec"]["versions"]}}
    )


def of_older_release() -> dict[str, Any]:
    """The definition of networks without one field of networks and one of subnets."""
    definition = copy.deepcopy(crds()[NETWORKS])
    spec = schema(definition)["properties"]["spec"]["properties"]
    del spec["retired"], spec["subnets"]["items"]["properties"]["excluded"]
    return definition


def schema(definition: dict[str, Any]) -> dict[str, Any]:
    (version,) = definition["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


async def test_a_definition_of_an_older_release_is_named_until_it_is_upgraded(client: KubeClient) -> None:
    check = DefinitionCheck(client)
    await apply(client, of_older_release())
    await check.check()
    (problem,) = check.problems()
    assert problem.startswith(f"CustomResourceDefinition {NETWORKS}: of an older release, without ")
    assert problem.endswith(" spec.retired, spec.subnets[].excluded: apply deploy/crds")
    await apply(client, crds()[NETWORKS])
    await check.check()
    assert check.problems() == []


async def test_a_definition_of_a_newer_release_passes(client: KubeClient) -> None:
    check = DefinitionCheck(client)
    await apply(client, next_definition(crds()[NETWORKS]))
    await check.check()
    assert check.problems() == []


def test_a_schema_that_preserves_unknown_fields_misses_none() -> None:
    found = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert list(missing_fields(found, schema(crds()[NETWORKS]))) == []


async def test_what_cannot_be_compared_is_left_as_it_was(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with API_SERVERS["fake"]() as access, connect(access) as client:
        check = DefinitionCheck(client)
        await check.check()
        assert check.problems() == [], "missing definitions are created by the leader"
    async with connect(type(access)(server.url)) as client:
        await ensure_crds(client)
        check = DefinitionCheck(client)
        await apply(client, of_older_release())
        await check.check()
        server.faults.reject(403, verb="get", times=len(crds()))
        caplog.clear()
        with caplog.at_level("INFO", "contrail_config.kubernetes.definition_check"):
            await check.check()
        (line,) = caplog.messages
        assert line.startswith(f"CustomResourceDefinitions that cannot be compared: {len(crds())}, first ")
        assert len(check.problems()) == 1
