"""CustomResourceDefinitions: created where they are missing, never changed, and monitored for deletion.

An existing CRD belongs to the cluster's operator and may be a newer version. Monitoring polls instead of watching: this
needs only the right to get the named objects.
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
"""Seconds for the server to establish a CRD."""


class CrdMetadata(Metadata, frozen=True):
    """Metadata of a CRD, with the time of its deletion if that has begun."""

    deletion_timestamp: datetime | None = None


class Condition(msgspec.Struct, frozen=True):
    """A condition of a CRD; `status` is `True`, `False` or `Unknown`."""

    type: str
    status: str
    message: str = ""


class CrdStatus(msgspec.Struct, frozen=True):
    """Status of a CRD; the server sets the condition `Established` once it serves the kind."""

    conditions: tuple[Condition, ...] | None = None


class CustomResourceDefinition(msgspec.Struct, frozen=True):
    """The fields of a CustomResourceDefinition that are read."""

    metadata: CrdMetadata
    status: CrdStatus = CrdStatus()


CUSTOM_RESOURCE_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    CustomResourceDefinition,
    namespaced=False,
)


async def ensure_crd(client: KubeClient, name: str, body: Any, *, deadline: float = DEADLINE) -> str:
    """Creates the CRD if it does not exist, and returns its uid once it is established.

    Raises KubeError; KubeUnavailableError if the CRD is not established within `deadline` seconds.
    """
    problem = "no answer"

    async def poll() -> str:
        nonlocal problem
        definition = await _get_or_create(client, name, body)
        problem = _problem_of(definition)
        if definition is None or problem:
            raise TryAgain
        return definition.metadata.uid

    wait = wait_random_exponential(multiplier=0.02, max=2.0, min=0.01)
    try:
        async with asyncio.timeout(deadline):
            return await AsyncRetrying(wait=wait, retry=retry_if_exception_type(TryAgain))(poll)
    except TimeoutError as error:
        message = f"CustomResourceDefinition {name}: not established after {deadline:g} s: {problem}"
        raise KubeUnavailableError(message) from error


async def monitor_crds(client: KubeClient, uids: Mapping[str, str], *, interval: float) -> None:
    """Checks every `interval` seconds that the CRDs still exist, and never returns; `uids` by name.

    Raises KubeNotFoundError once one of them is deleted, terminating or recreated: its objects are deleted with it.
    """
    while True:
        await asyncio.sleep(interval)
        for name, uid in uids.items():
            if await _is_deleted(client, name, uid):
                raise KubeNotFoundError(f"CustomResourceDefinition {name}: deleted, and all its objects with it")


async def _get_or_create(client: KubeClient, name: str, body: Any) -> CustomResourceDefinition | None:
    """Returns the CRD, None if it was created just now."""
    try:
        return await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    except KubeNotFoundError:
        pass
    # get before create: a process without the right to create can still use an existing CRD
    try:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    except KubeExistsError:
        return None  # another process created it between the two requests
    log.info("CustomResourceDefinition %s: created", name)
    return None


def _problem_of(definition: CustomResourceDefinition | None) -> str:
    """Returns why the CRD cannot be used yet, empty if it can."""
    if definition is None:
        return "it was created just now"
    if definition.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    conditions = {condition.type: condition for condition in definition.status.conditions or ()}
    if (established := conditions.get("Established")) is not None and established.status == "True":
        return ""
    texts = [f"{condition.type} {condition.status}: {condition.message}" for condition in conditions.values()]
    return "; ".join(texts) or "it has no conditions yet"


async def _is_deleted(client: KubeClient, name: str, uid: str) -> bool:
    """Whether this CRD is known to be deleted; an error that proves nothing is logged."""
    try:
        found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    except KubeNotFoundError:
        return True
    except KubeError as error:
        log.warning("CustomResourceDefinition %s: cannot be checked: %s", name, error)
        return False
    # a terminating CRD still serves its objects, but they are being deleted
    return found.metadata.uid != uid or found.metadata.deletion_timestamp is not None
