"""Node buckets: the system namespaces that hold virtual machines, chosen by a hash of the node's name.

What is served on a node is read from these namespaces alone, and only managers write there: a virtual machine that
somebody creates in a tenant's namespace changes nothing.

The namespaces are an index, too (see `bucket_namespaces`). An agent watches the bucket of its node, with the node's
label: a change is then compared with the watches of a part of the nodes only.

The number was chosen by measuring (`scripts/bench --only watches`): twice as many buckets are no cheaper, since each
watch also costs something by itself. It is part of the stored format: a manager moves virtual machines whose bucket
changed when it starts, but agents of another release would look for them elsewhere.
"""

import functools
from typing import Final

from contrail_config.kubernetes.bucket_namespaces import bucket_number

BUCKETS: Final = 32

_PREFIX: Final = "contrail-nodes-"

NODE_BUCKETS: Final = tuple(f"{_PREFIX}{number:02d}" for number in range(BUCKETS))
"""Names of the namespaces."""


@functools.lru_cache(maxsize=8192)  # called for each virtual machine of a list
def node_bucket(node: str) -> str:
    """Returns the namespace of the virtual machines of a node."""
    return NODE_BUCKETS[bucket_number(node, BUCKETS)]


def is_node_bucket(namespace: str) -> bool:
    """Whether the namespace is a node bucket."""
    return namespace in _NAMES


_NAMES: Final = frozenset(NODE_BUCKETS)
