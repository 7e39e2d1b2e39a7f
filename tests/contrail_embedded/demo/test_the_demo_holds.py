"""The demo as its user runs it: on the examples, kept and taken away, interrupted, and with something that fails."""

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contrail_embedded.demo.place import DemoDirectory

ROOT = Path(__file__).parents[3]
TIMEOUT = 50

Demo = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def place() -> Iterator[DemoDirectory]:
    place = DemoDirectory(f"ct-demo-{uuid.uuid4().hex[:8]}")
    yield place
    subprocess.run([*command(place), "--stop"], cwd=ROOT, check=True, timeout=TIMEOUT)


def command(place: DemoDirectory) -> list[str]:
    return [sys.executable, "-m", "contrail_embedded.demo", "--name", place.name]


@pytest.fixture
def demo(place: DemoDirectory) -> Demo:
    """Starts the demo from the checkout."""

    def start(*options: str) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        return subprocess.Popen([*command(place), *options], cwd=ROOT, stdout=pipe, stderr=pipe, text=True)

    return start


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, out, err


def nothing_is_left(place: DemoDirectory) -> bool:
    return not place.namespaces() and not os.path.exists(place.directory)


def on_node(place: DemoDirectory, *words: str) -> str:
    """Runs a command in the namespace that stands for the node."""
    run = ["ip", "netns", "exec", place.node_namespace, *words]
    return subprocess.run(run, check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout


def test_all_of_it_holds_for_the_examples(demo: Demo, place: DemoDirectory) -> None:
    status, out, err = ended(demo())
    assert (status, err) == (0, ""), out
    assert out.endswith("nothing is left; all of it held\n")
    assert re.search(r"^media/router +eth0 +pod network", out, re.MULTILINE)
    assert re.search(r"^ +six +shop/green +fd00:20::", out, re.MULTILINE)
    assert re.search(r"^ +front +shop/blue +10\.10\.0\.100/24, fd00:10::100/64", out, re.MULTILINE)
    assert nothing_is_left(place)


def test_what_is_kept_can_be_looked_at_and_is_taken_away_by_the_next_run(demo: Demo, place: DemoDirectory) -> None:
    status, out, err = ended(demo("--keep"))
    assert (status, err) == (0, ""), out
    assert f"ip netns exec {place.pod_namespace('shop', 'twice')} ip address" in out
    links = json.loads(on_node(place, "ip", "-json", "link"))
    assert len([link for link in links if link["ifname"].startswith("tap")]) > 8
    for line in re.findall(rf"^  ip netns exec {place.node_namespace} (.*)$", out, re.MULTILINE):
        assert on_node(place, *line.replace(".venv/bin/", f"{os.path.dirname(sys.executable)}/").split())
    status, out, err = ended(demo())
    assert (status, err) == (0, ""), out
    assert nothing_is_left(place)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("said", ["starting the embedded node", "ADD: "])
def test_an_interrupt_cleans_up(demo: Demo, place: DemoDirectory, said: str, number: signal.Signals) -> None:
    process = demo()
    assert process.stdout is not None
    while not process.stdout.readline().startswith(said):
        assert process.poll() is None
    process.send_signal(number)
    status, _, err = ended(process)
    assert (status, err) == (130, "demo: interrupted; nothing is left\n")
    assert nothing_is_left(place)


def test_a_pod_that_waits_is_a_failure_and_the_others_go_on(demo: Demo, place: DemoDirectory, tmp_path: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: shop%s}\nspec: {containers: []}\n"
    (tmp_path / "good.yaml").write_text(pod % ("good", ""))
    networks = ", annotations: {k8s.v1.cni.cncf.io/networks: nowhere}"
    (tmp_path / "bad.yaml").write_text(pod % ("bad", networks))
    status, out, err = ended(demo("--manifests", str(tmp_path)))
    assert status == 1
    assert err.startswith("demo: did not hold: pod shop/bad is Waiting: ")
    assert "CHECK: 1 pods" in out
    assert nothing_is_left(place)


def test_a_plugin_that_fails_is_told_for_each_pod(demo: Demo, place: DemoDirectory, tmp_path: Path) -> None:
    conflist = tmp_path / "10-other.conflist"
    conflist.write_text('{"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "no-such-plugin"}]}')
    status, out, err = ended(demo("--conflist", str(conflist)))
    assert status == 1
    assert "demo: did not hold: pod shop/plain: plugin no-such-plugin is not there" in err
    assert "ADD: 8 pods in 0.0 s, 8 findings" in out
    assert nothing_is_left(place)


def test_a_node_that_does_not_start_is_told_with_its_log(demo: Demo, place: DemoDirectory, tmp_path: Path) -> None:
    status, _, err = ended(demo("--manifests", str(tmp_path / "none")))
    assert status == 1
    assert err.startswith("demo: the node ended with status 2:\n")
    assert f"folder {tmp_path}/none cannot be read: No such file or directory\n" in err
    assert nothing_is_left(place)


def test_a_configuration_that_is_none_is_told(demo: Demo, place: DemoDirectory) -> None:
    status, _, err = ended(demo("--conflist", "none.conflist"))
    assert (status, err) == (1, "demo: none.conflist: cannot be read: No such file or directory\n")
    assert nothing_is_left(place)
