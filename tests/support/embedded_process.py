"""The embedded node as an operator starts it: one process on a folder of manifests."""

import contextlib
import http.client
import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.api_pages import every_item
from tests.support.free_port import free_port
from tests.support.served_process import ServedProcess

COMMAND = Path(sys.executable).parent / "contrail-manager"


class EmbeddedProcess(ServedProcess):
    """`contrail-manager --embedded` below `work`: manifests in `work/manifests`, its data in `work/data`.

    By default it listens on a free port, and without a datapath, which would program the machine's kernel.
    """

    def __init__(self, work: Path, *, listen: str = "", options: Sequence[str] = ()) -> None:
        self.manifests = work / "manifests"
        self.data = work / "data"
        self.manifests.mkdir(exist_ok=True)
        listen = listen or f"127.0.0.1:{free_port()}"
        command = [str(COMMAND), "--embedded", "--manifests", str(self.manifests), "--data-dir", str(self.data)]
        defaults = ["--listen", listen, "--datapath", "none"]  # the last one of an option counts
        super().__init__([*command, *defaults, *options], listen=listen, log=work / "node.log")

    @property
    def socket(self) -> Path:
        """The agent's Unix socket."""
        return self.data / "agent.sock"

    def items(self, kind: str, query: str = "") -> list[dict[str, Any]]:
        """The items that the manager's API lists for `pods`, `networks`, `interfaces` or `events`."""
        items = every_item(self.get, f"/v1/{kind}{query}")
        assert items is not None, self.log.read_text()
        return items

    def post(self, path: str, body: object) -> int:
        """Sends a request to the agent's Unix socket, as the plugin does; returns the status."""
        connection = http.client.HTTPConnection("localhost", timeout=10)
        with contextlib.closing(connection):
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(self.socket))
            connection.request("POST", path, json.dumps(body))
            return connection.getresponse().status

    def pod_states(self) -> dict[str, str]:
        """State of each pod, by `namespace/name`."""
        return {f"{item['namespace']}/{item['name']}": item["state"] for item in self.items("pods")}
