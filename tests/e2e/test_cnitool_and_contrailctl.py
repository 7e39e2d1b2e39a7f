"""Interoperability of cnitool and `contrailctl cni`: a shared cache of results and the same container IDs."""

import json
from collections.abc import Callable

import pytest

from tests.e2e.cnitool import Cnitool
from tests.e2e.host import Host
from tests.e2e.interfaces import interfaces
from tests.e2e.node import NETWORK, PLUGIN_DIRS, MakePod, Node
from tests.e2e.plugin_installation import COMMANDS
from tests.e2e.sandbox import MakeSandbox, Sandbox

ARGS = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0"

Contrailctl = Callable[..., str]


@pytest.fixture
def contrailctl(host: Host) -> Contrailctl:
    """Runs `contrailctl cni OPERATION` on the network; it must succeed."""

    def run(operation: str, sandbox: Sandbox, *options: str) -> str:
        command = (str(COMMANDS / "contrailctl"), "cni", operation, NETWORK, sandbox.path, *options)
        return host.run(*command, CNI_PATH=PLUGIN_DIRS)

    return run


def test_contrailctl_checks_and_detaches_an_attachment_of_cnitool(
    cnitool: Cnitool, contrailctl: Contrailctl, sandbox: Sandbox
) -> None:
    cnitool.add(sandbox)
    contrailctl("check", sandbox)
    contrailctl("del", sandbox)
    assert interfaces(sandbox.ip) == {}


def test_cnitool_checks_and_detaches_an_attachment_of_contrailctl(
    cnitool: Cnitool, contrailctl: Contrailctl, sandbox: Sandbox
) -> None:
    contrailctl("add", sandbox)
    cnitool.run("check", sandbox)
    cnitool.run("del", sandbox)
    assert interfaces(sandbox.ip) == {}


def test_cnitool_and_contrailctl_get_the_same_result(
    cnitool: Cnitool, contrailctl: Contrailctl, sandbox: Sandbox
) -> None:
    theirs = cnitool.add(sandbox)
    cnitool.run("del", sandbox)
    assert json.loads(contrailctl("add", sandbox, "-o", "json")) == theirs
    contrailctl("del", sandbox)


def test_contrailctl_reuses_the_arguments_of_cnitools_add(
    cnitool: Cnitool,
    contrailctl: Contrailctl,
    node: Node,
    make_sandbox: MakeSandbox,
    make_pod: MakePod,
) -> None:
    make_pod("web-0", networks="default/blue", namespace="shop")
    eth0 = node.allocated("web-0", namespace="shop")["eth0"]
    sandbox = make_sandbox()
    cnitool.add(sandbox, CNI_ARGS=ARGS, CAP_ARGS=f'{{"mac": "{eth0.mac}"}}')
    contrailctl("check", sandbox)
    contrailctl("del", sandbox)
    assert node.plugged("web-0", namespace="shop") == []


def test_cnitool_reads_the_arguments_cached_by_contrailctl(
    cnitool: Cnitool, contrailctl: Contrailctl, make_sandbox: MakeSandbox, make_pod: MakePod
) -> None:
    make_pod("web-0", networks="default/blue", namespace="shop")
    sandbox = make_sandbox()
    contrailctl("add", sandbox, "--args", ARGS)
    cnitool.run("check", sandbox, CNI_ARGS=ARGS)
    cnitool.run("del", sandbox)
