"""Identity of the pod that a call is for.

It comes from CNI_ARGS. A runtime without pods (podman, `ctr`) may omit it; then the container ID is the pod's name.
Attachments are keyed by container ID, not by pod name: a recreated pod has the name of its predecessor.
"""

from __future__ import annotations

from cni_contrail.errors import Code, PluginError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.protocol.environment import IDENTIFIER, Call
from cni_contrail.quoting import cut


class PodIdentity(NamedTuple):
    """`uid` is empty if the runtime does not pass it."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def pod_of(call: Call) -> PodIdentity:
    """Reads the pod's identity; raises `PluginError` with code 4 for invalid characters in a name or UID."""
    args = {
        "K8S_POD_NAMESPACE": call.args.get("K8S_POD_NAMESPACE") or "default",
        "K8S_POD_NAME": call.args.get("K8S_POD_NAME") or call.container_id,
        "K8S_POD_UID": call.args.get("K8S_POD_UID", ""),
    }
    for key, value in args.items():
        if value and not IDENTIFIER.fullmatch(value):
            raise PluginError(
                Code.INVALID_ENVIRONMENT, f"invalid characters in CNI_ARGS {key}", f"{key} is {cut(value)}"
            )
    return PodIdentity(*args.values())


def virtual_machine_name(cluster: str, pod: PodIdentity) -> str:
    """Name of the pod's VirtualMachine, by which the agent looks up its interfaces."""
    return f"{cluster}__{pod.namespace}__{pod.name}"
