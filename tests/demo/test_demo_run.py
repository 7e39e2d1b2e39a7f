"""The demo as its user runs it: on the examples, kept and removed, interrupted, and with failures."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from ipaddress import ip_interface
from pathlib import Path

import pytest

from demo.resources import DemoResources

pytestmark = pytest.mark.machine

ROOT = Path(__file__).parents[2]
TIMEOUT = 50

Demo = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def resources() -> Iterator[DemoResources]:
    resources = DemoResources(f"ct-{uuid.uuid4().hex[:8]}-demo")
    yield resources
    subprocess.run([*command(resources), "--stop"], cwd=ROOT, check=True, timeout=TIMEOUT)


def command(resources: DemoResources) -> list[str]:
    return [sys.executable, "-m", "demo", "--name", resources.name]


@pytest.fixture
def demo(resources: DemoResources) -> Demo:
    """Starts the demo from the checkout."""

    def start(*options: str) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        return subprocess.Popen([*command(resources), *options], cwd=ROOT, stdout=pipe, stderr=pipe, text=True)

    return start


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, out, err


def is_clean(resources: DemoResources) -> bool:
    return not resources.namespaces() and not os.path.exists(resources.directory)


def on_node(resources: DemoResources, *words: str) -> str:
    """Runs a command in the network namespace of the simulated node."""
    run = ["ip", "netns", "exec", resources.node_namespace, *words]
    return subprocess.run(run, check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout


def test_all_checks_pass_for_the_examples(demo: Demo, resources: DemoResources) -> None:
    status, out, err = finish(demo())
    assert (status, err) == (0, ""), out
    assert out.endswith("everything was removed; all checks passed\n")
    assert re.search(r"^media/router +eth0 +pod network", out, re.MULTILINE)
    assert re.search(r"^shop/named( +([1-9] \+[0-9]|-))+ *$", out, re.MULTILINE)
    plain = re.search(r"^shop/plain +eth0 +pod network +(\S+), (\S+) ", out, re.MULTILINE)
    assert plain
    assert [ip_interface(address).version for address in plain.groups()] == [4, 6]
    in_the_pod_network_alone = re.search(r"^shop/dual-stack .* ([0-9]) \+[0-9] +[0-9] \+[0-9] *$", out, re.MULTILINE)
    assert in_the_pod_network_alone
    assert in_the_pod_network_alone[1] == "2"  # shop/plain answers over both families
    assert re.search(r"^ +six +shop/green +fd00:20::", out, re.MULTILINE)
    assert re.search(r"^ +front +shop/blue +10\.10\.0\.100/24, fd00:10::100/64", out, re.MULTILINE)
    assert is_clean(resources)


def test_a_kept_run_prints_the_address_of_its_web_page_and_ends_it_with_the_node(
    demo: Demo, resources: DemoResources
) -> None:
    status, out, err = finish(demo("--keep"))
    assert (status, err) == (0, ""), out
    found = re.search(r"Its web page is (http://127\.0\.0\.1:\d+/)$", out, re.MULTILINE)
    assert found
    with urllib.request.urlopen(found[1], timeout=10) as page:
        assert b"contrail-multinet" in page.read()
    with urllib.request.urlopen(f"{found[1]}v1/summary", timeout=10) as summary:
        assert json.load(summary)["pods"]["Ready"] == 8
    with urllib.request.urlopen(f"{found[1]}v1/watch", timeout=10) as stream:
        assert stream.readline() == b"retry: 1000\n"
        assert finish(demo("--stop"))[0] == 0
        stream.read()  # it ends
    wait_until_refused(int(found[1].rstrip("/").rpartition(":")[2]))
    assert is_clean(resources)


def wait_until_refused(port: int) -> None:
    """Returns once nothing listens on the port: the relay learns of the node's end a moment later than the demo."""
    deadline = time.monotonic() + 10
    while listens(port):
        assert time.monotonic() < deadline


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_kept_run_can_be_inspected_and_is_removed_by_the_next_run(demo: Demo, resources: DemoResources) -> None:
    status, out, err = finish(demo("--keep"))
    assert (status, err) == (0, ""), out
    assert f"ip netns exec {resources.pod_namespace('shop', 'twice')} ip address" in out
    links = json.loads(on_node(resources, "ip", "-json", "link"))
    assert len([link for link in links if link["ifname"].startswith("tap")]) == 8  # index 0 of each pod
    for line in re.findall(rf"^  ip netns exec {resources.node_namespace} (.*)$", out, re.MULTILINE):
        assert on_node(resources, *line.replace(".venv/bin/", f"{os.path.dirname(sys.executable)}/").split())
    status, out, err = finish(demo())
    assert (status, err) == (0, ""), out
    assert is_clean(resources)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("line", ["starting the embedded node", "ADD: "])
def test_an_interrupt_cleans_up(demo: Demo, resources: DemoResources, line: str, number: signal.Signals) -> None:
    process = demo()
    assert process.stdout is not None
    while not process.stdout.readline().startswith(line):
        assert process.poll() is None
    process.send_signal(number)
    status, _, err = finish(process)
    assert (status, err) == (130, "demo: interrupted; everything was removed\n")
    assert is_clean(resources)


def test_a_waiting_pod_is_a_failure_and_others_continue(demo: Demo, resources: DemoResources, tmp_path: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: shop%s}\nspec: {containers: []}\n"
    (tmp_path / "good.yaml").write_text(pod % ("good", ""))
    networks = ", annotations: {k8s.v1.cni.cncf.io/networks: nowhere}"
    (tmp_path / "bad.yaml").write_text(pod % ("bad", networks))
    status, out, err = finish(demo("--manifests", str(tmp_path)))
    assert status == 1
    assert err.startswith("demo: check failed: pod shop/bad: Waiting: ")
    assert "CHECK: 1 pods" in out
    assert is_clean(resources)


def test_a_failing_plugin_is_reported_for_each_pod(demo: Demo, resources: DemoResources, tmp_path: Path) -> None:
    conflist = tmp_path / "10-other.conflist"
    conflist.write_text('{"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "no-such-plugin"}]}')
    status, out, err = finish(demo("--conflist", str(conflist)))
    assert status == 1
    assert "demo: check failed: pod shop/plain: plugin no-such-plugin: not found" in err
    assert "ADD: 8 pods in 0.0 s, 8 failures" in out
    assert is_clean(resources)


def test_a_node_that_fails_to_start_is_shown_with_its_log(demo: Demo, resources: DemoResources, tmp_path: Path) -> None:
    status, _, err = finish(demo("--manifests", str(tmp_path / "none")))
    assert status == 1
    assert err.startswith("demo: node: exited with status 2:\n")
    assert f"{tmp_path}/none: cannot read the folder: No such file or directory\n" in err
    assert is_clean(resources)


@pytest.mark.parametrize("name", ["", "netns"])
def test_a_name_of_others_is_wrong_use(name: str) -> None:
    run = [sys.executable, "-m", "demo", "--stop", "--name", name]
    ended = subprocess.run(run, cwd=ROOT, check=False, capture_output=True, text=True, timeout=TIMEOUT)
    assert ended.returncode == 2
    assert f"argument --name: '{name}'" in ended.stderr


def test_a_missing_network_configuration_is_reported(demo: Demo, resources: DemoResources) -> None:
    status, _, err = finish(demo("--conflist", "none.conflist"))
    assert (status, err) == (1, "demo: none.conflist: cannot be read: No such file or directory\n")
    assert is_clean(resources)
