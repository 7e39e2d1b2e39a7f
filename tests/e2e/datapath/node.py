"""Node whose kernel connects index 0 of its pods, with an uplink to a host outside.

Installed as in docs/install.md, with the chained plugins of `deploy/cni/chained`. Source addresses are validated
strictly (`rp_filter` 1) on all links.
"""

import contextlib
import json
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.cni_contrail.datapath.routed.conftest import COUNTED_PORTS
from tests.e2e import leftovers
from tests.e2e.cnitool import Cnitool
from tests.e2e.datapath.cluster import NAMESPACE, Cluster
from tests.e2e.host import Host
from tests.e2e.host_process import HostProcess
from tests.e2e.plugin_installation import COMMANDS, PLUGIN
from tests.e2e.polling import wait_until
from tests.e2e.sandbox import Sandbox
from tests.support.cluster_processes import AgentProcess
from tests.support.shim import build_shim

NODE = ("192.0.2.1", "2001:db8::1")
OUTSIDE = ("192.0.2.2", "2001:db8::2")
EXCLUDED = ("198.51.100.1", "2001:db8:100::1")
"""Addresses of the host outside that are in a network which the masquerade excludes."""

GATEWAYS = ("10.32.0.1", "fd00:32::1")
FAMILIES = (0, 1)
"""Positions in these, and in a pod's addresses."""

UPLINK = "uplink"
_EXCLUDED_NETWORKS = ("198.51.100.0/24", "2001:db8:100::/64")
_CONFLIST = Path(__file__).parents[3] / "deploy" / "cni" / "chained" / "10-contrail.conflist"
_SOCKET = "/run/contrail/cni.sock"
_OURS = "inet contrail"  # our table, and the beginning of the other one's name


class AttachedPod(NamedTuple):
    """A pod, its network namespace, the host end of its interface, its addresses, and the arguments of its ADD."""

    name: str
    sandbox: Sandbox
    path: Path
    host_end: str
    addresses: tuple[str, ...]
    arguments: Mapping[str, str]


class Node:
    """The node `name`; files of its processes are below `work`."""

    def __init__(self, name: str, host: Host, work: Path, cluster: Cluster) -> None:
        self.name = name
        self.host = host
        self.path = Path(host.net.path)
        self.outside = host.path(Sandbox(host).path)
        self.agent = AgentProcess(
            work,
            cluster.server.kubeconfig(),
            node=name,
            datapath="linux",
            masquerade_excluded=list(_EXCLUDED_NETWORKS),
        )
        command = [str(COMMANDS / "contrail-cnid")]
        self.daemon = HostProcess(host, command, work / "cnid.log", is_ready=self._listens)
        self._cluster = cluster
        self._cnitool = Cnitool(host)
        self._connect_outside()
        self._install()
        cluster.add_node(name, NODE)

    def start(self) -> None:
        """Starts agent and daemon, and waits until both serve."""
        with self.host.net.inside():
            self.agent.start()
        self.daemon.start()

    def stop_agent(self) -> None:
        """Kills the agent if it was started."""
        if self.agent.is_running:
            self.agent.kill()

    @contextlib.contextmanager
    def attached(self, name: str, **capabilities: Any) -> Iterator[AttachedPod]:
        """Attaches a new pod; `capabilities` are the runtime's, such as `portMappings`. Waits for the masquerade."""
        self._cluster.add_pod(self.name, name)
        sandbox = Sandbox(self.host)
        arguments = {
            "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE={NAMESPACE};K8S_POD_NAME={name}",
            "CAP_ARGS": json.dumps(capabilities),
        }
        try:
            result = self._cnitool.add(sandbox, **arguments)
            host_end = result["interfaces"][0]["name"]
            addresses = tuple(each["address"].partition("/")[0] for each in result["ips"])
            pod = AttachedPod(name, sandbox, self.host.path(sandbox.path), host_end, addresses, arguments)
            wait_until(lambda: self.is_whole(host_end), what="masqueraded", otherwise=self.our_rules)
            yield pod
        finally:
            self._cnitool.run("del", sandbox, **arguments)
            sandbox.remove()
            self._cluster.remove_pod(name)

    def check(self, pod: AttachedPod) -> None:
        """Runs CHECK on the chain of a pod."""
        self._cnitool.run("check", pod.sandbox, **pod.arguments)

    def is_whole(self, host_end: str = "") -> bool:
        """Whether the filter has its masquerade, with the excluded networks, and knows the host end."""
        rules = self.our_rules()
        return all(each in rules for each in ("masquerade", *_EXCLUDED_NETWORKS, host_end))

    def our_rules(self) -> str:
        """Our rules without counters; empty without our table."""
        return COUNTED_PORTS.sub("", self._tables().get(_OURS, ""))

    def others_rules(self) -> Counter[str]:
        """Lines of the rules of other programs, without counters."""
        tables = (text for name, text in self._tables().items() if not name.startswith(_OURS))
        return Counter(line.strip() for text in tables for line in text.splitlines())

    def everything(self) -> Counter[str]:
        """All that pods could leave behind on the node, beside rules."""
        return leftovers.of_host(self.host, self.agent.ports)

    def start_agent(self) -> None:
        """Starts the agent and waits until it is ready, which it is only if the daemon reports."""
        with self.host.net.inside():
            self.agent.start()

    def start_daemon(self) -> Any:
        """Starts the daemon and returns its first report: what it has found different in the kernel."""
        before = time.monotonic()
        self.daemon.start()
        wait_until(lambda: self._is_reported(before), what="reported", otherwise=self.daemon.output)
        return self._status()["report"]

    def restart_daemon(self) -> Any:
        """Restarts the daemon and returns its first report."""
        self.daemon.stop()
        return self.start_daemon()

    def _is_reported(self, since: float) -> bool:
        asked = time.monotonic()
        status = self._status()
        age = None if status is None else status["age"]
        return age is not None and asked - age > since

    def _status(self) -> Any:
        with self.host.net.inside():
            return self.agent.get("/datapath/report")

    def _tables(self) -> dict[str, str]:
        """Texts of all tables by family and name."""
        listed = self.host.run("nft", "--stateless", "list", "ruleset")
        return dict(re.findall(r"^table (\S+ \S+) {$(.*?)^}$", listed, re.DOTALL | re.MULTILINE))

    def _connect_outside(self) -> None:
        """Connects the host outside, which has routes to pods, so that only the masquerade decides what it sees."""
        run, outside = self.host.run, self.outside.name
        for scope in ("all", "default"):
            run("sysctl", "-qw", f"net.ipv4.conf.{scope}.rp_filter=1")
        run("ip", "link", "add", UPLINK, "type", "veth", "peer", "name", "eth0", "netns", outside)
        for inside, link, addresses, via in (([], UPLINK, NODE, OUTSIDE), (["-n", outside], "eth0", OUTSIDE, NODE)):
            run("ip", *inside, "link", "set", "lo", "up")
            for address, length in zip(addresses, ("24", "64"), strict=True):
                run("ip", *inside, "address", "add", f"{address}/{length}", "dev", link, *_without_detection(address))
            run("ip", *inside, "link", "set", link, "up")
            for gateway in via:
                run("ip", *inside, "route", "add", "default", "via", gateway)
        for address in EXCLUDED:
            run("ip", "-n", outside, "address", "add", address, "dev", "lo", *_without_detection(address))

    def _install(self) -> None:
        run = self.host.run
        run("install", str(build_shim()), f"/opt/cni/bin/{PLUGIN}")
        run("install", "-m", "0600", str(_CONFLIST), "/etc/cni/net.d/")
        self.host.path("/etc/contrail/cni.json").write_text(json.dumps({"agent-socket": str(self.agent.socket)}))

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as asking:
            try:
                asking.connect(str(self.host.path(_SOCKET)))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
        return True


def _without_detection(address: str) -> list[str]:
    """An IPv6 address is usable at once only without duplicate address detection."""
    return ["nodad"] if ":" in address else []
