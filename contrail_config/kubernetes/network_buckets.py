"""Network buckets: the system namespaces that hold network slices, chosen by a hash of the network's uuid.

What steers a node's datapath is read from these namespaces alone, and only managers write there. An agent watches the
buckets of the networks on its node, with their labels: a change is then compared with the watches of a part of the
networks only, and an agent has at most one watch per bucket, however many networks its node has.

The number is a compromise. With 5,000 nodes, 20 networks on each, and 400 changes of slices per second, matching a
change with the watches of its bucket takes 1.2 cores of the API servers at 128 buckets (3.7 us each), and twice that
at half the number. It is part of the stored format: agents of another release would look elsewhere.
"""

import functools
from typing import Final

from contrail_config.kubernetes.bucket_namespaces import bucket_number

BUCKETS: Final = 128

_PREFIX: Final = "contrail-networks-"

NETWORK_BUCKETS: Final = tuple(f"{_PREFIX}{number:03d}" for number in range(BUCKETS))
"""Names of the namespaces."""

_NAMES: Final = frozenset(NETWORK_BUCKETS)


@functools.lru_cache(maxsize=8192)  # called for each slice of a list
def network_bucket(network_uuid: str) -> str:
    """Returns the namespace of the slices of a network."""
    return NETWORK_BUCKETS[bucket_number(network_uuid, BUCKETS)]


def is_network_bucket(namespace: str) -> bool:
    """Whether the namespace is a network bucket."""
    return namespace in _NAMES
