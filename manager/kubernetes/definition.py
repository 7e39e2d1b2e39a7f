"""The CustomResourceDefinition of NADs: made where it is missing, never altered where it is there (rule 2).

It belongs to the cluster, and may be of another version with more in it, as Multus brings it. What is made here is what
the multi-network standard v1.3 says, with the short names that Multus' manifest has.

Looked at again and again instead of watched: that needs no right but to read this one object.
"""

import asyncio
import logging
from datetime import datetime

import msgspec

from contrail_config.kube.backoff import Backoff
from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeExistsError, KubeNotFoundError, KubeUnavailableError
from contrail_config.kube.resource import Metadata, Resource
from manager.kubernetes.wire import NADS

log = logging.getLogger(__name__)

NAME = f"{NADS.plural}.{NADS.group}"

_SCHEMA = {
    "description": "A network that pods can be attached to (Kubernetes Network Plumbing Working Group)",
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "config": {"description": "CNI network configuration or configuration list, as JSON", "type": "string"}
            },
        },
    },
}

_BODY = {
    "metadata": {"name": NAME},
    "spec": {
        "group": NADS.group,
        "scope": "Namespaced",
        "names": {
            "kind": NADS.kind,
            "plural": NADS.plural,
            "singular": "network-attachment-definition",
            "shortNames": ["nad", "net-attach-def"],
        },
        "versions": [
            {"name": NADS.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": _SCHEMA}},
        ],
    },
}


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    pass


class DefinitionMetadata(Metadata, frozen=True):
    """Metadata of a definition, and whether it is about to go."""

    deletion_timestamp: datetime | None = None


class Condition(_Wire, frozen=True):
    """One condition of a definition; `status` is `True`, `False` or `Unknown`."""

    type: str
    status: str
    message: str = ""


class DefinitionStatus(_Wire, frozen=True):
    """How far the server got with the definition."""

    conditions: tuple[Condition, ...] | None = None


class Definition(_Wire, frozen=True):
    """A CustomResourceDefinition."""

    metadata: DefinitionMetadata
    status: DefinitionStatus = DefinitionStatus()


DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    Definition,
    namespaced=False,
)


class NadDefinition:
    """`deadline`: seconds for which the server may take to establish it."""

    def __init__(self, client: KubeClient, *, deadline: float = 60.0) -> None:
        self._client = client
        self._deadline = deadline

    async def ensure(self) -> None:
        """Returns when NADs are served. Raises KubeError, KubeUnavailableError if that takes too long."""
        problem = "no answer"
        backoff = Backoff(first=0.05, longest=2.0)
        try:
            async with asyncio.timeout(self._deadline):
                while True:
                    problem = await self._problem()
                    if not problem:
                        return
                    await asyncio.sleep(backoff.next_pause())
        except TimeoutError as error:
            said = f"CustomResourceDefinition {NAME} is not established after {self._deadline:g} s: {problem}"
            raise KubeUnavailableError(said) from error

    async def _problem(self) -> str:
        """Why the definition cannot be used yet, empty if it can; makes it if it is not there."""
        try:
            definition = await self._client.get(DEFINITIONS, NAME)
        except KubeNotFoundError:
            await self._make()
            return "it was made just now"
        return _problem_of(definition)

    async def _make(self) -> None:
        try:
            await self._client.create(DEFINITIONS, _BODY)
        except KubeExistsError:
            return  # by somebody else, at the same moment
        log.info("made CustomResourceDefinition %s", NAME)


def _problem_of(definition: Definition) -> str:
    if definition.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    conditions = {condition.type: condition for condition in definition.status.conditions or ()}
    if (established := conditions.get("Established")) is not None and established.status == "True":
        return ""
    said = [f"{condition.type} {condition.status}: {condition.message}" for condition in conditions.values()]
    return "; ".join(said) or "it has no conditions yet"
