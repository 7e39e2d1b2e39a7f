"""Which pod a call is for.

Names come from CNI_ARGS; a runtime without pods (podman, `ctr`) gives none or some, and the container stands for the
pod then. The container ID, not the name, is what attachments are kept by: a pod that is made again bears its
predecessor's name.
"""

from __future__ import annotations

from cni_contrail.errors import Code, PluginError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.protocol.environment import IDENTIFIER, Call


class Pod(NamedTuple):
    """`uid` is empty if the runtime does not tell it."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def pod_of(call: Call) -> Pod:
    """Reads the pod's identity; raises `PluginError` with code 4 for characters that no name or uid has."""
    args = {
        "K8S_POD_NAMESPACE": call.args.get("K8S_POD_NAMESPACE") or "default",
        "K8S_POD_NAME": call.args.get("K8S_POD_NAME") or call.container_id,
        "K8S_POD_UID": call.args.get("K8S_POD_UID", ""),
    }
    for key, value in args.items():
        if value and not IDENTIFIER.fullmatch(value):
            raise PluginError(Code.INVALID_ENVIRONMENT, f"invalid characters in CNI_ARGS {key}", f"{key} is {value}")
    return Pod(*args.values())


def virtual_machine_name(cluster: str, pod: Pod) -> str:
    """Name of the pod's virtual machine, by which the agent is asked."""
    return f"{cluster}__{pod.namespace}__{pod.name}"
