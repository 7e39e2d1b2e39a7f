"""The pod annotations that choose networks; all other annotations are ignored."""

from collections.abc import Mapping

import msgspec

from manager.parsing.network_reference import NETWORK_KEY
from manager.parsing.networks import NETWORKS_KEY
from manager.source import Pod

DEFAULT_NETWORK_KEY = "v1.multus-cni.io/default-network"
DEFAULT_GATEWAY_KEY = "opencontrail.org/default-gw"

# Every key that the mapping reads must be here: other annotations are dropped from the cache.
_KEYS = (NETWORKS_KEY, DEFAULT_NETWORK_KEY, NETWORK_KEY, DEFAULT_GATEWAY_KEY)


def network_annotations(pod: Pod) -> Mapping[str, str]:
    """Returns the pod's annotations that choose networks."""
    return {key: pod.annotations[key] for key in _KEYS if key in pod.annotations}


def with_network_annotations_only(pod: Pod) -> Pod:
    """Returns the pod without other annotations: the manager caches every pod, so unused data would cost memory."""
    return msgspec.structs.replace(pod, annotations=network_annotations(pod))
