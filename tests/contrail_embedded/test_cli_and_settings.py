"""`contrail-manager`: starts as configured, or prints the reason in one line and exits with status 2."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.embedded_process import COMMAND, EmbeddedProcess
from tests.support.free_port import free_port


def _error_of(*arguments: str) -> str:
    completed = subprocess.run([str(COMMAND), *arguments], capture_output=True, text=True, timeout=20)
    assert completed.returncode == 2, completed.stderr
    assert completed.stdout == ""
    return [line for line in completed.stderr.splitlines() if line.startswith("contrail-manager: ")][-1]


def _embedded(work: Path, **given: str) -> list[str]:
    (work / "manifests").mkdir(exist_ok=True)
    values = {
        "manifests": str(work / "manifests"),
        "data-dir": str(work / "data"),
        "listen": f"127.0.0.1:{free_port()}",
        "datapath": "none",
    }
    return ["--embedded", *(f"--{key}={value}" for key, value in (values | given).items())]


def test_it_requires_a_configuration_or_embedded() -> None:
    assert _error_of() == "contrail-manager: --config FILE or --embedded is required"


def test_embedded_options_require_embedded(tmp_path: Path) -> None:
    config = tmp_path / "manager.yaml"
    config.write_text("{}")
    assert "--listen requires --embedded" in _error_of("--config", str(config), "--listen", "127.0.0.1:1")


@pytest.mark.parametrize("option", ["--no-masquerade", "--masquerade-excluded=10.0.0.0/8"])
def test_options_of_the_datapath_require_embedded(tmp_path: Path, option: str) -> None:
    config = tmp_path / "manager.yaml"
    config.write_text("{}")
    assert f"{option.partition('=')[0]} requires --embedded" in _error_of("--config", str(config), option)


@pytest.mark.parametrize("missing", ["manifests", "data-dir"])
def test_missing_options_of_embedded_are_named(tmp_path: Path, missing: str) -> None:
    arguments = [argument for argument in _embedded(tmp_path) if not argument.startswith(f"--{missing}")]
    assert f"--{missing}" in _error_of(*arguments)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"listen": "8083"}, "--listen: '8083' is not HOST:PORT"),
        ({"listen": "192.0.2.1:8083"}, "cannot listen on 192.0.2.1:8083"),
        ({"manifests": "/absent/folder"}, "/absent/folder"),
        ({"data-dir": "/dev/null/data"}, "/dev/null/data"),
        ({"masquerade-excluded": "10.0.0.0/8, 192.0.2.1/24"}, "--masquerade-excluded: 192.0.2.1/24 has host bits set"),
        ({"datapath": "vrouter"}, "argument --datapath: invalid choice: 'vrouter' (choose from 'linux', 'none')"),
        ({"fabric-subnets": "near"}, "--fabric-subnets: 'near' does not appear to be"),
    ],
)
def test_an_impossible_option_is_named(tmp_path: Path, given: dict[str, str], message: str) -> None:
    assert message in _error_of(*_embedded(tmp_path, **given))


@pytest.mark.parametrize(
    ("text", "message"),
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
        ("store: {kind: vnc, url: 127.0.0.1:8082}", "store.url: '127.0.0.1:8082' is not http://HOST:PORT"),
        ("listen: nowhere", "listen: 'nowhere' is not HOST:PORT"),
    ],
)
def test_a_configuration_error_names_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "manager.yaml"
    config.write_text(text)
    error = _error_of(*_embedded(tmp_path), "--config", str(config))
    assert str(config) in error
    assert message in error
    assert not os.path.exists(tmp_path / "data"), "rejected before anything was created"


def test_a_second_process_on_the_same_data_is_rejected(tmp_path: Path, node: EmbeddedProcess) -> None:
    node.start()
    assert node.process is not None
    message = _error_of(*_embedded(tmp_path))
    assert str(node.data) in message
    assert str(node.process.pid) in message
    assert node.get("/healthz")["healthy"]


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "store.sqlite").write_bytes(b"this is not a database, despite its name " * 100)
    assert str(tmp_path / "data" / "store.sqlite") in _error_of(*_embedded(tmp_path))


def test_the_manager_runs_alone_with_a_configuration(tmp_path: Path) -> None:
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
        assert node.get("/vm-cfg/k8s__demo__web") is None, "there is no agent"
        assert node.stop() == 0
