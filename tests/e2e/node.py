"""Node installed as in docs/install.md: the embedded node, the plugin and its network configuration."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from manager.api.types import InterfaceView
from tests.e2e.host import Host
from tests.e2e.interfaces import Interface
from tests.e2e.plugin_installation import PluginInstallation
from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write

CONFLIST = Path(__file__).parents[2] / "deploy" / "cni" / "10-contrail.conflist"
NETWORK = "contrail-k8s-cni"
PLUGIN_DIRS = "/opt/cni/bin:/usr/lib/cni"

MakePod = Callable[..., str]


class Node(EmbeddedProcess):
    """Serves networks `default/blue` (dual stack: 10.10.0.0/24, fd00:10::/64) and `default/green` (fd00:20::/64)."""

    def __init__(self, host: Host, work: Path, installation: PluginInstallation) -> None:
        # The plugin's default address of the agent, which it writes to as long as no agent-socket is set.
        super().__init__(work, listen="127.0.0.1:9091", options=["--tcp-writes"])
        self.host = host
        installation.install(host)
        host.run("install", "-m", "0600", str(CONFLIST), "/etc/cni/net.d/")
        blue = nad("blue", cidr="10.10.0.0/24, fd00:10::/64", namespace="default")
        write(self.manifests / "networks.yaml", blue, nad("green", cidr="fd00:20::/64", namespace="default"))

    def start(self) -> None:
        """Starts the embedded node in the host's network namespace."""
        with self.host.net.inside():
            super().start()

    def get(self, path: str) -> Any:
        """The JSON of a path, requested in the host's network namespace."""
        with self.host.net.inside():
            return super().get(path)

    @contextlib.contextmanager
    def plugin_settings(self, **settings: str | float) -> Iterator[None]:
        """Writes settings (`poll_timeout` is `poll-timeout`) to the node-wide file until the context is left."""
        file = self.host.path("/etc/contrail/cni.json")
        file.write_text(json.dumps({key.replace("_", "-"): value for key, value in settings.items()}))
        try:
            yield
        finally:
            file.unlink()

    @contextlib.contextmanager
    def network(
        self, name: str, *behind: Mapping[str, Any], mode: str = "thick", version: str = "1.0.0"
    ) -> Iterator[None]:
        """Installs a network configuration list with this plugin and others behind it, until the context is left."""
        ours = {"type": NETWORK, "contrail": {"mode": mode}, "capabilities": {"ips": True, "mac": True}}
        document = {"cniVersion": version, "name": name, "plugins": [ours, *behind]}
        file = self.host.path(f"/etc/cni/net.d/50-{name}.conflist")
        file.write_text(json.dumps(document))
        try:
            yield
        finally:
            file.unlink()

    def add_pod(self, name: str, *, networks: str | None, namespace: str = "default") -> None:
        """Writes a pod's manifest and waits until its interfaces are served."""
        write(self._manifest(name, namespace), pod(name, networks=networks, namespace=namespace))
        self.wait_until(lambda: self.pod_states().get(f"{namespace}/{name}") == "Ready", what=f"serving {name}")

    def remove_pod(self, name: str, *, namespace: str = "default") -> None:
        """Deletes a pod's manifest and waits until the pod is gone."""
        self._manifest(name, namespace).unlink()
        self.wait_until(lambda: f"{namespace}/{name}" not in self.pod_states(), what=f"without {name}")

    def allocated(self, name: str, *, namespace: str = "default") -> dict[str, Interface]:
        """The pod's interfaces in the manager's API, in order, by their names in thick mode."""
        views = msgspec.convert(self.items("interfaces", f"?namespace={namespace}"), list[InterfaceView])
        return {view.name: _interface(view) for view in views if view.pod == name}

    def plugged(self, name: str, *, namespace: str = "default") -> Sequence[Mapping[str, Any]]:
        """The pod's ports in the agent."""
        host = self.get(f"/vm-cfg/k8s__{namespace}__{name}")[0]["vm-uuid"]
        ports: list[dict[str, Any]] | None = self.get(f"/vm/{host}")
        return ports or []

    def _manifest(self, name: str, namespace: str) -> Path:
        return self.manifests / f"{namespace}.{name}.yaml"


def _interface(view: InterfaceView) -> Interface:
    addresses = frozenset(f"{each.address}/{each.prefix_length}" for each in view.interface.addresses)
    return Interface(view.interface.mac, view.interface.mtu, addresses)
