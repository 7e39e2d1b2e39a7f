"""The pod annotations that say which networks a pod gets; what else a pod carries is nothing to us."""

from collections.abc import Mapping

import msgspec

from manager.parsing.network_reference import NETWORK_KEY
from manager.parsing.networks import NETWORKS_KEY
from manager.source import Pod

DEFAULT_NETWORK_KEY = "v1.multus-cni.io/default-network"
DEFAULT_GATEWAY_KEY = "opencontrail.org/default-gw"

_KEYS = (NETWORKS_KEY, DEFAULT_NETWORK_KEY, NETWORK_KEY, DEFAULT_GATEWAY_KEY)


def network_annotations(pod: Pod) -> Mapping[str, str]:
    """Those of the pod's annotations that count here."""
    return {key: pod.annotations[key] for key in _KEYS if key in pod.annotations}


def with_network_annotations_only(pod: Pod) -> Pod:
    """The same pod with these annotations alone: a manager that keeps every pod keeps nothing that it never reads."""
    return msgspec.structs.replace(pod, annotations=network_annotations(pod))
