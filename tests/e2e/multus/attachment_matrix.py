"""Test matrix of attachments: requested networks of pods and the resulting interfaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.multus.node import FOREIGN_DEFAULT, default_network
from tests.e2e.node import NETWORK

_OUR_GATEWAYS = {"10.32.0.1": "eth0", "fd00:32::1": "eth0"}
_FOREIGN_GATEWAY = {"10.92.0.1": "eth0"}


@dataclass(frozen=True)
class MatrixRow:
    """A pod's `networks` and the resulting attachments (interface name to network name).

    `default` is the default network; a foreign one replaces this plugin's interface with index 0. `gateways` has the
    interface of each default route, by gateway.
    """

    name: str
    networks: Any
    attachments: Mapping[str, str]
    default: str = NETWORK
    gateways: Mapping[str, str] = field(default_factory=lambda: _OUR_GATEWAYS)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of Multus for a foreign default network; the node's settings have this plugin's."""
        return default_network(self.default) if self.default == FOREIGN_DEFAULT else {}

    @property
    def everything(self) -> dict[str, str]:
        """All attachments in order, including the default network."""
        return {"eth0": self.default, **self.attachments}

    def and_then(self, network: str) -> Any:
        """The networks with one more at the end."""
        if isinstance(self.networks, str):
            return f"{self.networks},{network}"
        return [*self.networks, {"name": network}]


_GREEN_GATEWAYS = ["10.12.0.1", "fd00:12::1"]

ROWS = (
    MatrixRow("one NAD", "blue", {"net1": "demo/blue"}),
    MatrixRow("same NAD twice", "blue,blue", {"net1": "demo/blue", "net2": "demo/blue"}),
    MatrixRow("two namespaces", "other/blue,blue", {"net1": "other/blue", "net2": "demo/blue"}),
    MatrixRow(
        "foreign in the middle",
        "blue,bridge,blue,macvlan,green",
        {"net1": "demo/blue", "net2": "demo/bridge", "net3": "demo/blue", "net4": "demo/macvlan", "net5": "demo/green"},
    ),
    MatrixRow(
        "requested names",
        "blue@left,bridge@middle,blue,blue@right",
        {"left": "demo/blue", "middle": "demo/bridge", "net3": "demo/blue", "right": "demo/blue"},
        default=FOREIGN_DEFAULT,
        gateways=_FOREIGN_GATEWAY,
    ),
    MatrixRow(
        "default-route",
        [{"name": "blue"}, {"name": "green", "default-route": _GREEN_GATEWAYS}],
        {"net1": "demo/blue", "net2": "demo/green"},
        gateways=dict.fromkeys(_GREEN_GATEWAYS, "net2"),
    ),
    MatrixRow("IPv6", "six,green", {"net1": "demo/six", "net2": "demo/green"}),
    MatrixRow(
        "conflist",
        "chain,blue,chain",
        {"net1": "demo/chain", "net2": "demo/blue", "net3": "demo/chain"},
        default=FOREIGN_DEFAULT,
        gateways=_FOREIGN_GATEWAY,
    ),
)
