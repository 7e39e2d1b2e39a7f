"""`contrail-manager` starts as its command line and configuration say, or says in one line why not: exit status 2."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.embedded_process import COMMAND, EmbeddedProcess
from tests.support.ports import free_port


def _refused(*arguments: str) -> str:
    ended = subprocess.run([str(COMMAND), *arguments], capture_output=True, text=True, timeout=20)
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout == ""
    return [line for line in ended.stderr.splitlines() if line.startswith("contrail-manager: ")][-1]


def _embedded(work: Path, **given: str) -> list[str]:
    (work / "manifests").mkdir(exist_ok=True)
    values = {
        "manifests": str(work / "manifests"),
        "data-dir": str(work / "data"),
        "listen": f"127.0.0.1:{free_port()}",
    }
    return ["--embedded", *(f"--{key}={value}" for key, value in (values | given).items())]


def test_it_needs_to_be_told_what_to_be() -> None:
    assert _refused() == "contrail-manager: --config FILE or --embedded is required"


def test_embedded_options_go_with_embedded(tmp_path: Path) -> None:
    config = tmp_path / "manager.yaml"
    config.write_text("{}")
    assert "--listen requires --embedded" in _refused("--config", str(config), "--listen", "127.0.0.1:1")


@pytest.mark.parametrize("missing", ["manifests", "data-dir"])
def test_what_embedded_needs_is_named(tmp_path: Path, missing: str) -> None:
    arguments = [argument for argument in _embedded(tmp_path) if not argument.startswith(f"--{missing}")]
    assert f"--{missing}" in _refused(*arguments)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"listen": "8083"}, "--listen: '8083' is not HOST:PORT"),
        ({"listen": "192.0.2.1:8083"}, "cannot listen on 192.0.2.1:8083"),
        ({"manifests": "/absent/folder"}, "/absent/folder"),
        ({"data-dir": "/dev/null/data"}, "/dev/null/data"),
    ],
)
def test_an_option_that_cannot_be_is_named(tmp_path: Path, given: dict[str, str], said: str) -> None:
    assert said in _refused(*_embedded(tmp_path, **given))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster-nam: x", "cluster-nam"),
        ("pod-network: {subnets: [10.0.0.0/8, 10.1.0.0/16]}", "pod-network.subnets"),
        ("pod-network: {subnets: [10.0.0.0/8], gateway: [11.0.0.1]}", "pod-network.gateway"),
        ("pod-network: {mtu: huge}", "pod-network.mtu"),
        ("source: {kind: kubernetes}", "store.kind: embedded: agents in a cluster cannot read it"),
        (
            "source: {kind: kubernetes}\nstore: {kind: kubernetes}",
            "source.kind: kubernetes cannot be combined with --embedded",
        ),
        ("store: {kind: kubernetes}", "virtual machines of pods without manifest would be deleted"),
        ("store: {kind: vnc, url: http://127.0.0.1:8082}", "store.kind: vnc is not supported yet"),
        ("listen: nowhere", "listen: 'nowhere' is not HOST:PORT"),
    ],
)
def test_a_wrong_configuration_is_named_with_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    config = tmp_path / "manager.yaml"
    config.write_text(text)
    message = _refused(*_embedded(tmp_path), "--config", str(config))
    assert str(config) in message
    assert said in message
    assert not os.path.exists(tmp_path / "data"), "refused before anything was made"


def test_a_second_process_on_the_same_data_is_refused(tmp_path: Path, node: EmbeddedProcess) -> None:
    node.start()
    assert node.process is not None
    message = _refused(*_embedded(tmp_path))
    assert str(node.data) in message
    assert str(node.process.pid) in message
    assert node.get("/healthz")["healthy"]


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "store.sqlite").write_bytes(b"this is no database, whatever its name says" * 100)
    assert str(tmp_path / "data" / "store.sqlite") in _refused(*_embedded(tmp_path))


def test_the_manager_runs_alone_by_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    listen = f"127.0.0.1:{free_port()}"
    config = tmp_path / "manager.yaml"
    config.write_text(
        f"source: {{kind: manifests, path: {tmp_path}/manifests}}\n"
        f"store: {{kind: embedded, path: {tmp_path}/store.sqlite}}\nlisten: {listen}\n"
    )
    node = EmbeddedProcess(tmp_path)
    node.listen = listen
    with subprocess.Popen([str(COMMAND), "--config", str(config)], stderr=subprocess.DEVNULL) as process:
        node.process = process
        node.wait_until(lambda: node.get("/readyz") is not None, what="ready")
        assert len(node.items("networks")) == 1
        assert node.get("/vm-cfg/k8s__demo__web") is None, "no agent is served"
        assert node.stop() == 0
