"""The agent's configuration file, whose errors name the key, and its command line."""

import socket
from pathlib import Path

import pytest

from agent_api.cli import main
from agent_api.configuration import AgentConfiguration, EmbeddedStoreSettings, load_agent_configuration
from agent_api.datapath.kind import Datapath
from contrail_service.errors import ConfigurationError

pytestmark = pytest.mark.usefixtures("restored_logging")

WHOLE = """
node: worker-1
listen: "[::1]:9092"
socket: /run/test/agent.sock
tcp-writes: true
ports-dir: /var/test/ports
store: {kind: embedded, path: /var/test/config.db}
metrics-listen: 0.0.0.0:9093
datapath: linux
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agent.yaml"


def test_an_empty_file_yields_the_defaults(file: Path) -> None:
    file.write_text("")
    configuration = load_agent_configuration(str(file))
    assert configuration == AgentConfiguration(
        node=socket.gethostname(),
        listen="127.0.0.1:9091",
        socket="/run/contrail/agent.sock",
        tcp_writes=False,
        ports_dir="/var/lib/contrail/ports",
        store=None,
        metrics_listen=None,
        datapath=Datapath.NONE,
    )


def test_every_key_is_read(file: Path) -> None:
    file.write_text(WHOLE)
    configuration = load_agent_configuration(str(file))
    assert configuration == AgentConfiguration(
        node="worker-1",
        listen="[::1]:9092",
        socket="/run/test/agent.sock",
        tcp_writes=True,
        ports_dir="/var/test/ports",
        store=EmbeddedStoreSettings(path="/var/test/config.db"),
        metrics_listen="0.0.0.0:9093",
        datapath=Datapath.LINUX,
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("tcp_writes: true", "Object contains unknown field `tcp_writes`"),
        ("tcp-writes: perhaps", "tcp-writes: Expected `bool`, got `str`"),
        ("listen: 9091", "listen: Expected `str`, got `int`"),
        ("listen: localhost", "listen: 'localhost' is not HOST:PORT, such as 127.0.0.1:8083 or [::1]:8083"),
        ("metrics-listen: x:99999", "metrics-listen: 'x:99999' is not HOST:PORT, such as 127.0.0.1:8083 or [::1]:8083"),
        ("metrics-listen: 127.0.0.1:9091", "metrics-listen: 127.0.0.1:9091 is already used by listen"),
        ("datapath: vrouter", "datapath: Invalid enum value 'vrouter'"),
        ("node: ' '", "node: must not be empty"),
        ("socket: agent.sock", "socket: 'agent.sock' is not an absolute path"),
        ("ports-dir: ''", "ports-dir: '' is not an absolute path"),
        ("store: {kind: etcd}", "store.kind: Invalid value 'etcd'"),
        ("store: {path: /x}", "store: Object missing required field `kind`"),
        ("store: {kind: kubernetes, path: /x}", "store: Object contains unknown field `path`"),
        ("store: {kind: embedded, file: x}", "store: Object contains unknown field `file`"),
        ("[]", "must be a mapping of keys, not list"),
    ],
)
def test_an_error_names_file_and_key(file: Path, text: str, error: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        load_agent_configuration(str(file))
    assert str(raised.value) == f"{file}: {error}"


class TestNodeName:
    """The node name becomes a label of objects in the cluster, truncated if it is long."""

    @pytest.mark.parametrize("name", ["A b", "../x", "-x", "x.", "é", "x\\n", "x" * 254])
    def test_a_name_that_is_no_label_value_is_rejected(self, file: Path, name: str) -> None:
        file.write_text(f'node: "{name}"\nstore: {{kind: kubernetes}}')
        with pytest.raises(ConfigurationError) as raised:
            load_agent_configuration(str(file))
        assert str(raised.value).startswith(f"{file}: node: ")
        assert "is not a valid node name; " in str(raised.value)

    @pytest.mark.parametrize("name", ["x", "Worker_1.example", "x" * 253])
    def test_other_names_are_accepted(self, file: Path, name: str) -> None:
        file.write_text(f"node: {name}\nstore: {{kind: kubernetes}}")
        assert load_agent_configuration(str(file)).node == name

    def test_an_invalid_default_names_the_key_too(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NODE_NAME", "A b")
        file.write_text("store: {kind: kubernetes}")
        with pytest.raises(ConfigurationError, match="node: 'A b' is not a valid node name"):
            load_agent_configuration(str(file))

    def test_any_name_is_accepted_for_other_stores(self, file: Path) -> None:
        file.write_text("node: A b\nstore: {kind: embedded}")
        assert load_agent_configuration(str(file)).node == "A b"


class TestCommand:
    """`contrail-agent --config FILE`."""

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            (
                WHOLE,
                "store.kind: embedded is not supported by a standalone agent; run `contrail-manager --embedded`",
            ),
            ("store: {kind: vnc, url: []}", "store.url: at least one is required"),
            ("node: worker-1", "store: required, for example {kind: kubernetes}"),
            ("store:", "store: required, for example {kind: kubernetes}"),
        ],
    )
    def test_rejects_a_store_that_it_does_not_support(
        self, file: Path, capsys: pytest.CaptureFixture[str], text: str, error: str
    ) -> None:
        file.write_text(text)
        assert main(["--config", str(file)]) == 2
        assert capsys.readouterr().err == f"contrail-agent: {file}: {error}\n"

    def test_rejects_a_missing_kubeconfig(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file.write_text(f"store: {{kind: kubernetes, kubeconfig: {file}.absent}}\nports-dir: {file.parent}/ports")
        assert main(["--config", str(file)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("contrail-agent: store.kubeconfig: ")
        assert f"{file}.absent" in line

    def test_reports_errors_of_the_file_first(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file.write_text("store: {kind: kubernetes}\nnode: ''")
        assert main(["--config", str(file)]) == 2
        assert capsys.readouterr().err == f"contrail-agent: {file}: node: must not be empty\n"

    def test_requires_a_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main([])
        assert ended.value.code == 2
        assert "--config" in capsys.readouterr().err
