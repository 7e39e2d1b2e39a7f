"""One machine without a cluster, installed by the commands of the install page, word for word."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cnitool import Cnitool
from tests.e2e.host import Host, temporary_host
from tests.e2e.interfaces import interfaces
from tests.e2e.polling import wait_until
from tests.e2e.sandbox import Sandbox
from tests.support.documentation import ROOT, section
from tests.support.locked_versions import constraints

pytestmark = pytest.mark.timeout(300)  # pip downloads what the package needs

MANIFESTS = """
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: POD, annotations: {opencontrail.org/cidr: 10.9.0.0/24}}
spec: {config: '{"cniVersion": "1.0.0", "type": "contrail-k8s-cni"}'}
---
apiVersion: v1
kind: Pod
metadata: {name: POD, annotations: {k8s.v1.cni.cncf.io/networks: POD}}
spec: {containers: [{name: app, image: none}]}
"""


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Replaced: the host of these tests ends with them, whatever is on it."""


@pytest.fixture(scope="module")
def commands() -> list[str]:
    """The blocks of commands, in their order."""
    found = re.findall(r"```sh\n(.*?)```", section("install", "One machine, no cluster"), re.DOTALL)
    assert [len(each.splitlines()) for each in found] == [3, 2, 4, 1, 1], "the page has changed"
    return found


@pytest.fixture(scope="module")
def machine(commands: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The host after all blocks; two of them start a program that goes on."""
    logs = tmp_path_factory.mktemp("machine")
    # The programs end with the host.
    with contextlib.ExitStack() as started, temporary_host() as host:
        install, manager, plugin, shim, daemon = commands
        run_online(host, install)
        started.enter_context(start(host, manager, logs / "manager"))
        wait_until(lambda: is_ready(host), what="ready: manager", otherwise=(logs / "manager").read_text)
        run(host, plugin)
        attach(host, "web-0")
        run(host, shim)
        started.enter_context(start(host, daemon, logs / "daemon"))
        socket = host.path("/run/contrail/cni.sock")
        wait_until(socket.exists, what="there: daemon", otherwise=(logs / "daemon").read_text)
        yield host


def run(host: Host, block: str) -> None:
    """In the checkout, as a shell in a terminal does; a command that fails is an error."""
    host.run("bash", "-c", f"cd {ROOT} && set -e\n{block}")


def run_online(host: Host, block: str) -> None:
    """As `run`, but with the network of the real host, from which pip downloads."""
    target = next(each for each in host.enter if each.startswith("--target="))
    host.path("/run/constraints.txt").write_text(constraints())
    variables = {**os.environ, "PIP_CONSTRAINT": "/run/constraints.txt", "PIP_NO_COMPILE": "1"}
    command = ["nsenter", target, "--mount", "--", "bash", "-c", f"cd {ROOT} && set -e\n{block}"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])


def start(host: Host, block: str, log: Path) -> subprocess.Popen[str]:
    """A program that goes on, in the checkout."""
    with log.open("w") as output:
        return host.start("bash", "-c", f"cd {ROOT} && {block}", stdout=output, stderr=output)


def is_ready(host: Host) -> bool:
    script = "import urllib.request as http; http.urlopen('http://127.0.0.1:9091/readyz', timeout=5)"
    return host.call("python3", "-c", script).returncode == 0


def attach(host: Host, pod: str) -> Sandbox:
    """ADD of a pod with a network of its own; returns its sandbox."""
    manifests = MANIFESTS.replace("POD", pod)
    host.path(f"/etc/contrail/manifests/{pod}.yaml").write_text(manifests)
    sandbox = Sandbox(host)
    args = f"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod}"
    Cnitool(host).add(sandbox, CNI_ARGS=args)
    return sandbox


def test_pods_get_their_interfaces(machine: Host) -> None:
    assert list(interfaces(attach(machine, "web-1").ip)) == ["eth0", "eth1"]


def test_contrailctl_finds_the_manager(machine: Host) -> None:
    program = "/opt/contrail-multinet/bin/contrailctl"
    assert "web-0" in machine.run(program, "--manager", "http://127.0.0.1:9091", "get", "pods", "-o", "json")


def test_the_installed_plugin_is_the_shim(machine: Host) -> None:
    installed = machine.path("/opt/cni/bin/contrail-k8s-cni")
    assert not installed.is_symlink()
    assert installed.read_bytes() == (ROOT / "build/contrail-k8s-cni").read_bytes()
