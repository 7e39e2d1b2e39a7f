"""Pods, NADs and namespaces as a source delivers them."""

import uuid
from typing import Any

from manager.source import Nad, Namespace, Pod

OWN_CONFIG = '{"cniVersion": "1.0.0", "type": "contrail-k8s-cni"}'
FOREIGN_CONFIG = '{"cniVersion": "1.0.0", "type": "macvlan"}'

_UIDS = uuid.UUID("6f3c1b7e-1052-4c1e-8a43-0d6f9d0b5c1e")


def uid_of(namespace: str, name: str, *, generation: int = 1) -> str:
    """A deterministic uid; another `generation` is another pod of the same name."""
    return str(uuid.uuid5(_UIDS, f"{namespace}/{name}/{generation}"))


def make_pod(
    name: str = "web-0",
    *,
    namespace: str = "blue",
    networks: str | None = None,
    default_network: str | None = None,
    network: str | None = None,
    default_gw: str | None = None,
    generation: int = 1,
    **fields: Any,
) -> Pod:
    """A pod; `networks`, `default_network`, `network` and `default_gw` are its annotations."""
    annotations = {
        "k8s.v1.cni.cncf.io/networks": networks,
        "v1.multus-cni.io/default-network": default_network,
        "opencontrail.org/network": network,
        "opencontrail.org/default-gw": default_gw,
    }
    stated = {key: value for key, value in annotations.items() if value is not None}
    fields.setdefault("uid", uid_of(namespace, name, generation=generation))
    return Pod(namespace=namespace, name=name, node="node-1", annotations=stated, **fields)


def make_nad(
    name: str = "net-a",
    *,
    namespace: str = "blue",
    cidr: str | None = "10.1.0.0/16",
    gateway: str | None = None,
    exclude: str | None = None,
    network: str | None = None,
    forwarding_mode: str | None = None,
    config: str | None = OWN_CONFIG,
    generation: int = 1,
) -> Nad:
    """A NAD; its annotations from `cidr` to `forwarding_mode`, and `config`, its `spec.config`."""
    annotations = {
        "opencontrail.org/cidr": cidr,
        "opencontrail.org/gateway": gateway,
        "opencontrail.org/exclude": exclude,
        "opencontrail.org/network": network,
        "opencontrail.org/forwarding-mode": forwarding_mode,
    }
    return Nad(
        namespace=namespace,
        name=name,
        uid=uid_of(namespace, f"nad {name}", generation=generation),
        annotations={key: value for key, value in annotations.items() if value is not None},
        config=config,
    )


def make_namespace(name: str = "blue", **annotations: str | None) -> Namespace:
    """A namespace with annotations of the group `opencontrail.org`; those that are None are left out."""
    stated = {f"opencontrail.org/{key}": value for key, value in annotations.items() if value is not None}
    return Namespace(name=name, annotations=stated)


def reference(project: str, name: str, *, domain: str = "default-domain") -> str:
    """The value of `opencontrail.org/network` for a network."""
    return f'{{"domain": "{domain}", "project": "{project}", "name": "{name}"}}'
