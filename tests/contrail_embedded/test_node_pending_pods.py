"""A pod whose network is missing: the plugin's error names it, and an ADD after the network appeared succeeds."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write
from tests.support.netns import Netns
from tests.support.plugin import LONG_POLL, Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon

MakeNetns = Callable[[str], Netns]


@pytest.fixture(params=["entry point", "shim and daemon"])
def plugin(
    request: pytest.FixtureRequest, node: EmbeddedProcess, make_netns: MakeNetns, tmp_path: Path
) -> Iterator[Plugin]:
    """The plugin on the embedded node."""
    folder = tmp_path / "cni"
    folder.mkdir()
    plugin = Plugin(make_netns("node"), folder, str(node.socket))
    if request.param == "shim and daemon":
        plugin.caller = ShimAndDaemon(plugin.node, plugin.node_file)
    yield plugin
    plugin.caller.close()


@pytest.fixture
def sandbox(make_netns: MakeNetns) -> Netns:
    return make_netns("pod")


@pytest.fixture
def waiting(node: EmbeddedProcess, sandbox: Netns) -> PodSandbox:
    """A pod that names a missing network."""
    write(node.manifests / "pod.yaml", pod("web", networks="blue"))
    node.start()
    (view,) = node.items("pods")
    assert view["state"] == "Waiting"
    return PodSandbox(sandbox.path, name="web", uid=view["uid"])


REASON = "NetworkNotFound: network attachment definition demo/blue not found"


def wait_until_named(node: EmbeddedProcess, plugin: Plugin, pod: PodSandbox) -> None:
    """Repeats ADD, as kubelet does, until its error names the reason."""
    node.wait_until(lambda: plugin.add(pod).failed(11).endswith(REASON), what="stored")


def test_the_error_names_the_missing_network_until_it_appears(
    node: EmbeddedProcess, plugin: Plugin, waiting: PodSandbox, sandbox: Netns
) -> None:
    wait_until_named(node, plugin, waiting)
    assert sandbox.links() == []
    write(node.manifests / "nad.yaml", nad("blue", cidr="10.1.0.0/24"))
    plugin.add(waiting, settings=LONG_POLL).succeeded()
    assert sandbox.links() == ["eth0", "eth1"]
    plugin.delete(waiting).succeeded()
    assert plugin.node.links() == []


def test_a_recreated_pod_does_not_get_the_reason_of_its_predecessor(
    node: EmbeddedProcess, plugin: Plugin, waiting: PodSandbox, sandbox: Netns
) -> None:
    wait_until_named(node, plugin, waiting)
    successor = PodSandbox(sandbox.path, name="web")
    assert plugin.add(successor).failed(11).endswith(f"with uid {successor.uid}")


def test_the_reason_survives_a_kill_and_is_gone_with_the_pod(
    node: EmbeddedProcess, plugin: Plugin, waiting: PodSandbox
) -> None:
    wait_until_named(node, plugin, waiting)
    node.kill()
    node.start()
    wait_until_named(node, plugin, waiting)
    node.kill()
    (node.manifests / "pod.yaml").unlink()
    node.start()
    node.wait_until(lambda: REASON not in plugin.add(waiting).failed(11), what="without the reason")
