"""Node buckets: the system namespaces that hold virtual machines, chosen by a hash of the node's name.

What is served on a node is read from these namespaces alone, and only managers write there: a virtual machine that
somebody creates in a tenant's namespace changes nothing.

The namespaces are an index, too. The API server has no index for labels (nor for `selectableFields`, which only
filter), so it matches each change of a kind with each watch of the same namespace, and it skips watches of other
namespaces. An agent watches the bucket of its node, with the node's label: a change is then compared with the watches
of a part of the nodes only.

The number was chosen by measuring (`scripts/bench --only watches`): twice as many buckets are no cheaper, since each
watch also costs something by itself. It is part of the stored format: a manager moves virtual machines whose bucket
changed when it starts, but agents of another release would look for them elsewhere.
"""

import functools
import hashlib
from typing import Final

import msgspec

from contrail_config.kube.resource import Metadata, Resource

BUCKETS: Final = 32

_PREFIX: Final = "contrail-nodes-"

NODE_BUCKETS: Final = tuple(f"{_PREFIX}{number:02d}" for number in range(BUCKETS))
"""Names of the namespaces."""

_LABELS: Final = {"app.kubernetes.io/part-of": "contrail-multinet", "app.kubernetes.io/managed-by": "contrail-manager"}


class _Namespace(msgspec.Struct, frozen=True):
    metadata: Metadata


NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces", _Namespace, namespaced=False)


@functools.lru_cache(maxsize=8192)  # called for each virtual machine of a list
def node_bucket(node: str) -> str:
    """Returns the namespace of the virtual machines of a node."""
    return NODE_BUCKETS[bucket_number(node, BUCKETS)]


def bucket_number(node: str, buckets: int) -> int:
    """Returns the bucket of a node, of so many, from 0; the same on every machine and in every release."""
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:8]) % buckets


def is_node_bucket(namespace: str) -> bool:
    """Whether the namespace is a node bucket."""
    return namespace in _NAMES


def bucket_namespace(name: str) -> dict[str, object]:
    """Returns the namespace object of a bucket."""
    return {"metadata": {"name": name, "labels": _LABELS}}


_NAMES: Final = frozenset(NODE_BUCKETS)
