"""CustomResourceDefinition of NADs: created if it is missing, never changed if it exists (rule 2).

It belongs to the cluster, and an existing one may be of another version with more fields, such as that of Multus. The
one created here follows the multi-network standard v1.3, with the short names of Multus' manifest.
"""

from contrail_config.kube.client import KubeClient
from contrail_config.kube.custom_resource_definitions import DEADLINE, ensure_crd
from manager.kubernetes.wire import NADS

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


class NadCrd:
    """`deadline`: seconds that the server may take to establish it."""

    def __init__(self, client: KubeClient, *, deadline: float = DEADLINE) -> None:
        self._client = client
        self._deadline = deadline

    async def ensure(self) -> None:
        """Returns when NADs are served. Raises KubeError; KubeUnavailableError on timeout."""
        await ensure_crd(self._client, NAME, _BODY, deadline=self._deadline)
