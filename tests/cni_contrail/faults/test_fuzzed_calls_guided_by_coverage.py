"""A coverage-guided fuzzer finds no crash and no leak in one second for each kind of input.

To run it longer: FUZZ_SECONDS=600.
"""

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.netns import Netns
from tests.support.scripted_agents import make_vmis, node_agent_item, vrouter_agent_item

SECONDS = int(os.environ.get("FUZZ_SECONDS", "1"))
FUZZER = Path(__file__).parents[2] / "support" / "coverage_fuzzer.py"

PREVIOUS = {"cniVersion": "1.1.0", "interfaces": [{"name": "eth0", "sandbox": "/x", "mac": "02:00:00:00:00:01"}]}
VALID = [{"containerID": "c1", "ifname": "eth0"}]


def config(**more: Any) -> str:
    return json.dumps({"cniVersion": "1.1.0", "name": "contrail-k8s-cni", **more})


SEEDS: dict[str, list[str]] = {
    "stdin": [
        "\0" + config(contrail={"mode": "thick", "mtu": 1400, "vif-type": "veth"}, dns={"nameservers": ["10.0.0.2"]}),
        "\1" + config(contrail={"unknown": 1}),
        "\2" + config(prevResult=PREVIOUS),
        "\3" + config(**{"cni.dev/valid-attachments": VALID}),
        "\4" + config(ipam={}, args={"cni": {"mac": "02:00:00:00:00:01"}}, runtimeConfig={"ips": ["10.0.0.5/24"]}),
    ],
    "args": [
        "IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web-0;K8S_POD_UID=u;MAC=02:00:00:00:00:01;IP=10.1.0.5"
    ],
    "answers": [json.dumps([make(vmi) for vmi in make_vmis(2)]) for make in (node_agent_item, vrouter_agent_item)],
    "wire": [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        "HTTP/1.1 404 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.0 503 x\r\n\r\n{}",
    ],
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="atheris has wheels for x86_64 alone")
@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize("target", SEEDS)
def test_no_input_crashes_the_plugin_or_leaves_anything(
    node: Netns, sandbox: Netns, tmp_path: Path, target: str
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(SEEDS[target]):
        (corpus / str(number)).write_text(seed)
    program = [sys.executable, "-I", str(FUZZER), target, str(tmp_path), sandbox.path]
    options = [f"-max_total_time={SECONDS}", f"-artifact_prefix={tmp_path}/", "-timeout=10", str(corpus)]
    done = node.run(*program, *options, timeout=SECONDS + 50)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "INITED" in done.stderr
