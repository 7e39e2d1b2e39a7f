"""CustomResourceDefinitions: made where they are missing, never altered where they are there, and missed when they go.

One that is there belongs to whoever runs the cluster, and may be of another version with more in it. It is looked at
again and again instead of watched: that needs no right but to read this one object.
"""

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from tenacity import AsyncRetrying, TryAgain, retry_if_exception_type, wait_random_exponential

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeError, KubeExistsError, KubeNotFoundError, KubeUnavailableError
from contrail_config.kube.resource import Metadata, Resource

log = logging.getLogger(__name__)

DEADLINE: Final = 60.0
"""Seconds for the server to establish one."""


class DefinitionMetadata(Metadata, frozen=True):
    """Metadata of a definition, and whether it is about to go."""

    deletion_timestamp: datetime | None = None


class Condition(msgspec.Struct, frozen=True):
    """One condition of a definition; `status` is `True`, `False` or `Unknown`."""

    type: str
    status: str
    message: str = ""


class DefinitionStatus(msgspec.Struct, frozen=True):
    """How far the server got with the definition."""

    conditions: tuple[Condition, ...] | None = None


class CustomResourceDefinition(msgspec.Struct, frozen=True):
    """What is read of a CustomResourceDefinition."""

    metadata: DefinitionMetadata
    status: DefinitionStatus = DefinitionStatus()


CUSTOM_RESOURCE_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    CustomResourceDefinition,
    namespaced=False,
)


async def ensure_crd(client: KubeClient, name: str, body: Any, *, deadline: float = DEADLINE) -> str:
    """Makes the definition if it is not there, and returns its uid once its objects are served.

    Raises KubeError, KubeUnavailableError if that takes longer than `deadline` seconds.
    """
    problem = "no answer"

    async def poll() -> str:
        nonlocal problem
        definition = await _get_or_make(client, name, body)
        problem = _problem_of(definition)
        if definition is None or problem:
            raise TryAgain
        return definition.metadata.uid

    wait = wait_random_exponential(multiplier=0.02, max=2.0, min=0.01)
    try:
        async with asyncio.timeout(deadline):
            return await AsyncRetrying(wait=wait, retry=retry_if_exception_type(TryAgain))(poll)
    except TimeoutError as error:
        said = f"CustomResourceDefinition {name} is not established after {deadline:g} s: {problem}"
        raise KubeUnavailableError(said) from error


async def miss_definitions(client: KubeClient, uids: Mapping[str, str], *, interval: float) -> None:
    """Looks at definitions every `interval` seconds, for ever; `uids` by name.

    Raises KubeNotFoundError once one of them is gone or about to go, or another one is in its place: its objects are
    gone, too.
    """
    while True:
        await asyncio.sleep(interval)
        for name, uid in uids.items():
            if await _is_gone(client, name, uid):
                raise KubeNotFoundError(f"CustomResourceDefinition {name} was deleted, and all its objects with it")


async def _get_or_make(client: KubeClient, name: str, body: Any) -> CustomResourceDefinition | None:
    """The definition, None if it was made just now."""
    try:
        return await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    except KubeNotFoundError:
        pass
    try:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    except KubeExistsError:
        return None  # made by somebody else, at the same moment
    log.info("made CustomResourceDefinition %s", name)
    return None


def _problem_of(definition: CustomResourceDefinition | None) -> str:
    """Why the definition cannot be used yet, empty if it can."""
    if definition is None:
        return "it was made just now"
    if definition.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    conditions = {condition.type: condition for condition in definition.status.conditions or ()}
    if (established := conditions.get("Established")) is not None and established.status == "True":
        return ""
    said = [f"{condition.type} {condition.status}: {condition.message}" for condition in conditions.values()]
    return "; ".join(said) or "it has no conditions yet"


async def _is_gone(client: KubeClient, name: str, uid: str) -> bool:
    """Whether this definition is gone, as far as that can be known now."""
    try:
        found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    except KubeNotFoundError:
        return True
    except KubeError as error:
        log.warning("CustomResourceDefinition %s cannot be looked at: %s", name, error)
        return False
    return found.metadata.uid != uid or found.metadata.deletion_timestamp is not None
