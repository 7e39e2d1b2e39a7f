"""Buckets: the system namespaces over which objects are distributed by a hash, so that watches are cheap.

The API server has no index for labels (nor for `selectableFields`, which only filter), so it matches each change of a
kind with each watch of the same namespace, and it skips watches of other namespaces.

A namespace is created with its first object, and never deleted.
"""

import contextlib
import hashlib
import logging
from typing import Any, Final

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeExistsError, KubeNotFoundError
from contrail_config.kube.resource import KubeObject, Metadata, Resource

log = logging.getLogger(__name__)

_LABELS: Final = {"app.kubernetes.io/part-of": "contrail-multinet", "app.kubernetes.io/managed-by": "contrail-manager"}


class _Namespace(msgspec.Struct, frozen=True):
    metadata: Metadata


NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces", _Namespace, namespaced=False)


def bucket_number(name: str, buckets: int) -> int:
    """Returns the bucket of a name, of so many, from 0; the same on every machine and in every release."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) % buckets


def bucket_namespace(name: str) -> dict[str, object]:
    """Returns the namespace object of a bucket."""
    return {"metadata": {"name": name, "labels": _LABELS}}


async def create_in_bucket(client: KubeClient, resource: Resource[Any], wanted: KubeObject) -> Any:
    """Creates the object, and its bucket if that is missing; returns it as stored. Raises KubeExistsError."""
    bucket = wanted.metadata.namespace
    with contextlib.suppress(KubeNotFoundError):
        return await client.create(resource, wanted, namespace=bucket)
    with contextlib.suppress(KubeExistsError):
        await client.create(NAMESPACES, bucket_namespace(bucket))
        log.info("namespace %s: created", bucket)
    return await client.create(resource, wanted, namespace=bucket)
