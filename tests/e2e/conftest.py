"""A host with a node per test module, and a check for leftovers after each test."""

import shutil
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e import leftovers
from tests.e2e.cnitool import Cnitool
from tests.e2e.host import Host, temporary_host
from tests.e2e.node import MakePod, Node
from tests.e2e.plugin_installation import EntryPointInstallation, PluginInstallation, ShimInstallation
from tests.e2e.real_host_kernel import kernel_objects
from tests.e2e.sandbox import MakeSandbox, Sandbox

_CLEANUP_TIMEOUT = 10.0
"""Seconds: the kernel removes links of deleted namespaces, and runtimes their helper processes, asynchronously."""


_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups the tests of a folder, or of a file beside this one: they share a node or a cluster.

    Of one group, pytest-xdist runs one at a time, in their order.
    """
    for item in items:
        if _HERE in item.path.parents:
            group = item.path if item.path.parent == _HERE else item.path.parent
            item.add_marker(pytest.mark.xdist_group(str(group.relative_to(_HERE))))


@pytest.fixture(scope="session", autouse=True)
def _the_real_host_is_unchanged() -> Iterator[None]:
    files, in_kernel = leftovers.of_the_real_host(), kernel_objects()
    yield
    assert leftovers.of_the_real_host() == files
    _await(lambda: kernel_objects() <= in_kernel)
    assert sorted(kernel_objects() - in_kernel) == []


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_this_run_is_left() -> Iterator[None]:
    """Fails if a network namespace or a process of any folder's nodes is left."""
    with pytest.MonkeyPatch.context() as environment:
        mark = f"of-{uuid.uuid4().hex}"
        environment.setenv("CONTRAIL_TEST_RUN", mark)
        yield
        _await(lambda: not leftovers.of_this_run(mark))
        assert leftovers.of_this_run(mark) == []


@pytest.fixture(
    scope="module", params=[EntryPointInstallation(), ShimInstallation()], ids=lambda installation: installation.name
)
def installation(request: pytest.FixtureRequest) -> PluginInstallation:
    """How the plugin is installed on the node; every test runs with each installation."""
    chosen: PluginInstallation = request.param
    return chosen


@pytest.fixture(scope="module")
def host(installation: PluginInstallation) -> Iterator[Host]:
    """A new host for each installation, since they must not share files and processes."""
    with temporary_host() as host:
        yield host


@pytest.fixture(scope="module")
def node(host: Host, installation: PluginInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A running node."""
    node = Node(host, tmp_path_factory.mktemp("node"), installation)
    try:
        node.start()
        yield node
    finally:
        if node.process is not None:
            node.kill()


@pytest.fixture(scope="session")
def busybox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system with a shell and `ip`."""
    binaries = tmp_path_factory.mktemp("rootfs") / "bin"
    binaries.mkdir()
    found = shutil.which("busybox")
    assert found is not None, "busybox is not installed"
    shutil.copy(found, binaries)
    for name in ("sh", "ip", "sleep", "cat"):
        (binaries / name).symlink_to("busybox")
    return binaries.parent


@pytest.fixture(autouse=True)
def _nothing_is_left(node: Node) -> Iterator[None]:
    """Waits for asynchronous cleanup, then fails if anything differs from before the test."""
    before = leftovers.everything(node)
    yield
    _await(lambda: leftovers.everything(node) == before)
    after = leftovers.everything(node)
    assert after - before == Counter(), "left behind"
    assert before - after == Counter(), "missing"


def _await(holds: Callable[[], bool]) -> None:
    """Returns when the condition holds, or after a while."""
    give_up = time.monotonic() + _CLEANUP_TIMEOUT
    while not holds() and time.monotonic() < give_up:
        time.sleep(0.05)  # noqa: TID251 - other processes and the kernel are polled


@pytest.fixture
def make_pod(node: Node) -> Iterator[MakePod]:
    """Adds a pod, by default in namespace `default` (`make_pod("web", networks="blue")`), and returns its name."""
    made: list[tuple[str, str]] = []

    def make(name: str, *, networks: str | None = None, namespace: str = "default") -> str:
        made.append((name, namespace))
        node.add_pod(name, networks=networks, namespace=namespace)
        return name

    yield make
    for name, namespace in made:
        node.remove_pod(name, namespace=namespace)


@pytest.fixture
def make_sandbox(host: Host) -> Iterator[MakeSandbox]:
    """Creates network namespaces on the host."""
    made: list[Sandbox] = []

    def make() -> Sandbox:
        made.append(Sandbox(host))
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.remove()


@pytest.fixture
def sandbox(make_sandbox: MakeSandbox, make_pod: MakePod) -> Sandbox:
    """A network namespace of a pod with interfaces eth0, eth1 and front."""
    sandbox = make_sandbox()
    make_pod(sandbox.container_id, networks="blue, green@front")
    return sandbox


@pytest.fixture
def cnitool(host: Host) -> Cnitool:
    """cnitool on the host."""
    return Cnitool(host)
