"""What a pod's `k8s.v1.cni.cncf.io/networks` asks for, once parsed."""

from collections.abc import Mapping
from typing import Any

import msgspec


class NetworkSelection(msgspec.Struct, frozen=True):
    """One element of the list (multi-network standard v1.3, 4.1).

    `ips` are addresses without prefix in canonical form, `mac` is lower-case with colons. `default_route`: None if the
    element does not carry the key, else the gateways asked for (empty: no default route at all). `unserved` says, one
    sentence each, what the element asks for that our networks cannot give; another plugin's network may.
    """

    namespace: str
    name: str
    interface: str | None = None
    mac: str | None = None
    ips: tuple[str, ...] = ()
    default_route: tuple[str, ...] | None = None
    cni_args: Mapping[str, Any] | None = None
    unserved: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The NAD as `namespace/name`."""
        return f"{self.namespace}/{self.name}"
