"""Network buckets: the namespace of a network's slices."""

import uuid
from collections import Counter

from contrail_config.kubernetes.network_buckets import BUCKETS, NETWORK_BUCKETS, is_network_bucket, network_bucket


def test_networks_are_spread_over_all_buckets() -> None:
    networks = Counter(network_bucket(str(uuid.UUID(int=number))) for number in range(20_000))
    assert set(networks) == set(NETWORK_BUCKETS)
    assert max(networks.values()) < 1.5 * 20_000 / BUCKETS


def test_the_bucket_of_a_network_is_stable() -> None:
    """It is part of the stored format: agents and managers of different releases must agree."""
    assert (BUCKETS, network_bucket(str(uuid.UUID(int=1)))) == (128, "contrail-networks-077")
    assert is_network_bucket("contrail-networks-127")
    assert not is_network_bucket("contrail-networks-128")
