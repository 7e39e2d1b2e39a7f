"""Node of a cluster: a network namespace on the fabric, with an agent and `contrail-cnid`, whose pods are attached."""

import contextlib
from pathlib import Path
from typing import Any

from tests.e2e.loopback_proxy import loopback_proxy
from tests.support.cluster_processes import AgentProcess
from tests.support.datapath_node import NodeDaemon, call_shim
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.plugin_callers import await_listener
from tests.support.real_apiserver.server import ApiServer

MTU = 1600
"""Of the fabric: room for a pod's packet of 1500 bytes in a tunnel over either family."""

_LENGTHS = ("24", "64")


class Node:
    """The node `number`, from 1; files are below `folder`. `addresses` are those on the fabric."""

    def __init__(self, number: int, server: ApiServer, fabric: Netns, folder: Path) -> None:
        self.name = f"node-{number}"
        self.addresses = (f"192.0.2.{number}", f"2001:db8::{number:x}")
        self.namespace = Netns("node")
        self.networks = NodeNetworks(folder / "networks")
        self.agent = AgentProcess(folder, server.kubeconfig(), node=self.name, datapath="linux")
        self._connect(fabric, f"node{number}")
        self._api = server.url
        self._proxy = contextlib.ExitStack()
        settings = {
            "agent-socket": str(self.agent.socket),
            "state-dir": str(folder / "state"),
            "netns-dir": str(self.networks.folder),
        }
        self.daemon = NodeDaemon(folder, settings)

    def start(self) -> None:
        """Starts agent and daemon, and waits until both serve."""
        self.connect_to_server()
        self.start_agent()
        self.start_daemon()

    def start_agent(self) -> None:
        """Starts the agent and waits until it is ready."""
        with self.namespace.inside():
            self.agent.start()

    def start_daemon(self) -> None:
        """Starts the daemon and waits until it listens."""
        with self.namespace.inside():
            self.daemon.launch()
        await_listener(str(self.daemon.socket))

    def connect_to_server(self) -> None:
        """Makes the API server reachable."""
        self._proxy.enter_context(loopback_proxy(self._api, self.namespace))

    def add(self, pod: str, sandbox: Netns) -> Any:
        """Runs ADD for a pod; returns the result or the error."""
        return call_shim(self.daemon, "ADD", pod, sandbox)

    def close(self) -> None:
        """Kills what runs and removes the node's kernel state."""
        if self.agent.is_running:
            self.agent.kill()
        self.daemon.close()
        self._proxy.close()
        self.networks.close()
        self.namespace.delete()

    def _connect(self, fabric: Netns, port: str) -> None:
        fabric.ip("link", "add", port, "mtu", str(MTU), "up", "master", "fabric", "type", "veth",
                  "peer", "name", "eth0", "mtu", str(MTU), "netns", self.namespace.name)  # fmt: skip
        self.namespace.ip("link", "set", "eth0", "addrgenmode", "none", "up")
        for address, length in zip(self.addresses, _LENGTHS, strict=True):
            detection = ("nodad",) if ":" in address else ()
            self.namespace.ip("address", "add", f"{address}/{length}", "dev", "eth0", *detection)
