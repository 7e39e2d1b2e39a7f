"""Node of a cluster: a network namespace on the fabric, with an agent and `contrail-cnid`, whose pods are attached."""

import contextlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from cni_contrail.agent.http import Endpoint, HttpExchange
from cni_contrail.deadline import Deadline
from tests.e2e.polling import wait_until
from tests.support.cluster_processes import BINARIES, AgentProcess
from tests.support.datapath_node import NodeDaemon, call_shim
from tests.support.loopback_proxy import loopback_proxy
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.plugin_callers import await_listener

MTU = 1600
"""Of the fabric: room for a pod's packet of 1500 bytes in a tunnel over either family."""

_TIMEOUT = 30.0


class AgentServer(Protocol):
    """The server that has the agent's store."""

    @property
    def url(self) -> str:
        """Its URL, on loopback."""

    def kubeconfig(self) -> Path:
        """Returns a kubeconfig for it."""


class Node:
    """The node `number`, from 1; files are below `folder`. `addresses` are those on the fabric, of these families.

    `settings` are further configuration keys of the agent.
    """

    def __init__(
        self,
        number: int,
        server: AgentServer,
        fabric: Netns,
        folder: Path,
        families: Sequence[int] = (0, 1),
        **settings: Any,
    ) -> None:
        self.name = f"node-{number}"
        both = (f"192.0.2.{number}", f"2001:db8::{number:x}")
        self.addresses = tuple(both[family] for family in families)
        self.mac = f"02:00:00:00:fe:{number:02x}"
        self.namespace = Netns("node")
        self.networks = NodeNetworks(folder / "networks")
        self.agent = AgentProcess(folder, server.kubeconfig(), node=self.name, datapath="linux", **settings)
        self._fabric, self._port = fabric, f"node{number}"
        self._connect()
        self._api = server.url
        self._proxy = contextlib.ExitStack()
        self._state = folder / "state"
        settings = {
            "agent-socket": str(self.agent.socket),
            "state-dir": str(self._state),
            "netns-dir": str(self.networks.folder),
        }
        self.daemon = NodeDaemon(folder, settings)

    def start(self) -> None:
        """Starts agent and daemon, and waits until both serve."""
        self.connect_to_server()
        self.start_agent()
        self.start_daemon()

    def start_agent(self, *environment: str) -> None:
        """Starts the agent and waits until it is ready; `environment` is a command that runs another one."""
        with self.namespace.inside():
            self.agent.launch(*environment)
            self.agent.wait_until_ready()

    def launch_agent(self) -> None:
        """Starts the agent without waiting."""
        with self.namespace.inside():
            self.agent.launch()

    def start_daemon(self, *environment: str) -> None:
        """Starts the daemon and waits until it listens; `environment` is a command that runs another one."""
        with self.namespace.inside():
            self.daemon.launch(*environment)
        await_listener(str(self.daemon.socket))

    def connect_to_server(self) -> None:
        """Makes the API server reachable."""
        self._proxy.enter_context(loopback_proxy(self._api, self.namespace))

    def cut_off_from_server(self) -> None:
        """Ends all connections to the API server and refuses new ones."""
        self._proxy.close()

    @contextlib.contextmanager
    def black_hole(self) -> Iterator[None]:
        """Drops all packets from and to the API server, without an answer to either side."""
        port = urlsplit(self._api).port
        rules = [
            "add table inet hole",
            "add chain inet hole dropped { type filter hook input priority 0; }",
            *(f"add rule inet hole dropped tcp {end} {port} drop" for end in ("sport", "dport")),
        ]
        made = self.namespace.run("nft", "; ".join(rules))
        assert made.returncode == 0, made.stderr
        try:
            yield
        finally:
            assert self.namespace.run("nft", "delete table inet hole").returncode == 0

    @contextlib.contextmanager
    def without_uplink(self) -> Iterator[None]:
        """Takes the carrier of its link to the fabric, and drops all packets from and to the API server."""
        with self.black_hole():
            self._fabric.ip("link", "set", self._port, "down")
            try:
                yield
            finally:
                self._fabric.ip("link", "set", self._port, "up")

    def change_addresses(self, *addresses: str) -> None:
        """Replaces the addresses on the fabric, as DHCP does when a lease is lost."""
        for address in self.addresses:
            self._set_address("delete", address)
        self.addresses = addresses
        for address in addresses:
            self._set_address("add", address)

    def reboot(self) -> None:
        """Ends all processes, loses all state of the kernel and what is below /run, and starts again."""
        self.stop()
        self._proxy.close()
        self.networks.close()
        self._fabric.ip("link", "delete", self._port)
        self.namespace.delete()
        shutil.rmtree(self._state)
        self.daemon.socket.unlink()
        self.namespace = Netns("node")
        self._connect()
        self.start()

    def add(self, pod: str, sandbox: Netns, *, namespace: str = "demo") -> Any:
        """Runs ADD for a pod; returns the result or the error."""
        return call_shim(self.daemon, "ADD", pod, sandbox, namespace=namespace)

    def delete(self, pod: str, sandbox: Netns, *, namespace: str = "demo") -> None:
        """Runs DEL for a pod."""
        assert call_shim(self.daemon, "DEL", pod, sandbox, namespace=namespace) == {}

    def is_ready(self) -> bool:
        """Whether the agent says that it is ready."""
        return self.readiness()[0] == HTTPStatus.OK

    def readiness(self) -> tuple[int, Any]:
        """Status and body of the agent's `/readyz`."""
        with self.namespace.inside():
            return self.agent.ask("/readyz")

    def contrailctl(self, *arguments: str) -> str:
        """Runs contrailctl on the node with its agent; returns the output."""
        command = [str(BINARIES / "contrailctl"), "--agent", f"http://{self.agent.listen}", *arguments]
        ended = self.namespace.run(*command)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def await_report(self, since: float) -> Any:
        """Waits for a report of the daemon that is younger than the monotonic time `since`, and returns it."""
        wait_until(lambda: self._is_reported(since), what="reported")
        return self._status()["report"]

    def is_programmed(self, since: float) -> bool:
        """Whether the daemon has reported what the agent served last, after the monotonic time `since`."""
        status = self._status()
        return self._is_reported(since) and status["report"]["version"] == status["version"]

    def stop(self) -> None:
        """Kills agent and daemon if they run; the kernel keeps what it has."""
        if self.agent.is_running:
            self.agent.kill()
        if self.daemon.is_running:
            self.daemon.kill()

    def close(self) -> None:
        """Kills what runs and removes the node's kernel state."""
        self.stop()
        self._proxy.close()
        self.networks.close()
        self.namespace.delete()

    def _is_reported(self, since: float) -> bool:
        asked = time.monotonic()
        age = self._status()["age"]
        return age is not None and asked - age > since

    def metric(self, name: str) -> float:
        """A metric of the agent that has no labels."""
        lines = self._ask("/metrics").decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def _status(self) -> Any:
        return json.loads(self._ask("/datapath/report"))

    def _ask(self, path: str) -> bytes:
        endpoint = Endpoint(str(self.agent.socket), "", 0)
        return HttpExchange(endpoint, "GET", path, b"", Deadline(_TIMEOUT)).response().body

    def _connect(self) -> None:
        self._fabric.ip("link", "add", self._port, "mtu", str(MTU), "up", "master", "fabric", "type", "veth",
                        "peer", "name", "eth0", "address", self.mac, "mtu", str(MTU),
                        "netns", self.namespace.name)  # fmt: skip
        self.namespace.ip("link", "set", "eth0", "addrgenmode", "none", "up")
        for address in self.addresses:
            self._set_address("add", address)

    def _set_address(self, action: str, address: str) -> None:
        length, options = ("64", ["nodad"]) if ":" in address else ("24", [])
        if action == "delete":
            options = []
        self.namespace.ip("address", action, f"{address}/{length}", "dev", "eth0", *options)
