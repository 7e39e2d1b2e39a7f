"""Invalid calls are answered as the reference library answers them."""

import contextlib
import dataclasses
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cni_contrail.errors import PluginError
from cni_contrail.protocol.netconf import read_config
from cni_contrail.quoting import cut
from tests.cni_contrail.conftest import DAEMON, ENTRY_POINT
from tests.support.netns import Netns
from tests.support.plugin import COMMAND, Outcome, Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon, shim
from tests.support.scripted_agents import ScriptedAgent

LOOPBACK = "/usr/lib/cni/loopback"
COMPLETE = {
    "CNI_COMMAND": "ADD",
    "CNI_CONTAINERID": "abc",
    "CNI_NETNS": "/run/netns/not-there",
    "CNI_IFNAME": "eth0",
    "CNI_PATH": "/opt/cni/bin",
}
GOOD = '{"name": "net", "cniVersion": "1.0.0"}'
REQUIRED = {
    "ADD": ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
    "CHECK": ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
    "DEL": ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"],
    "GC": ["CNI_PATH"],
    "STATUS": ["CNI_PATH"],
}


def run(command: list[str], environment: dict[str, str], stdin: str | None) -> Outcome:
    """Runs a plugin; `stdin` None: closed."""
    arguments = command if stdin is not None else ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    done = subprocess.run(arguments, env=environment, input=stdin or "", capture_output=True, text=True, timeout=20)
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture(params=[ENTRY_POINT, DAEMON])
def call(request: pytest.FixtureRequest, node: Netns, tmp_path: Path) -> Iterator[Callable[..., Outcome]]:
    """Calls the plugin directly, or through the daemon."""
    no_file = tmp_path / "none"
    command, more = COMMAND, {"CONTRAIL_CNI_CONFIG": str(no_file)}
    with contextlib.closing(ShimAndDaemon(node, no_file)) as caller:
        if request.param == DAEMON:
            caller.daemon()
            command, more = [shim()], {"CONTRAIL_CNI_SOCKET": caller.socket_path}

        def call(environment: dict[str, str], stdin: str | None = GOOD) -> Outcome:
            return run(command, {**environment, **more}, stdin)

        yield call


@pytest.mark.parametrize("command", REQUIRED)
def test_each_missing_required_variable_is_named(call: Callable[..., Outcome], command: str) -> None:
    complete = {**COMPLETE, "CNI_COMMAND": command}
    for name in REQUIRED[command]:
        for environment in (
            {key: value for key, value in complete.items() if key != name},
            {**complete, name: ""},
        ):
            assert call(environment).failed(4) == f"required env variables [{name}] missing"


@pytest.mark.parametrize("command", REQUIRED)
def test_all_missing_variables_are_named_in_a_fixed_order(call: Callable[..., Outcome], command: str) -> None:
    message = call({"CNI_COMMAND": command}).failed(4)
    assert message == f"required env variables [{','.join(REQUIRED[command])}] missing"


@pytest.mark.parametrize("container", ["a:b", "_x", "-x", "a/b", ".x", "a b", "..", "a\n", "ä"])
def test_container_ids_with_invalid_characters_are_rejected(call: Callable[..., Outcome], container: str) -> None:
    message = call({**COMPLETE, "CNI_CONTAINERID": container}).failed(4)
    assert message == f"invalid characters in containerID CNI_CONTAINERID is {container.strip()}"


@pytest.mark.parametrize(
    ("ifname", "problem"),
    [
        ("0123456789abcdef", "too long"),
        ("ääääääää", "too long"),
        (".", ". or .."),
        ("..", ". or .."),
        ("a/b", "contains / or : or whitespace"),
        ("a:b", "contains / or : or whitespace"),
        ("a b", "contains / or : or whitespace"),
        ("a\tb", "contains / or : or whitespace"),
        ("a\udcff", "not UTF-8"),
    ],
)
def test_invalid_interface_names_are_rejected(call: Callable[..., Outcome], ifname: str, problem: str) -> None:
    message = call({**COMPLETE, "CNI_IFNAME": ifname}).failed(4)
    assert problem in message
    assert "CNI_IFNAME" in message


@pytest.mark.parametrize("command", ["FOO", "add", "Version"])
def test_an_unknown_command_is_named(call: Callable[..., Outcome], command: str) -> None:
    assert call({"CNI_COMMAND": command}).failed(4) == f"unknown CNI_COMMAND: {command}"


def test_an_unknown_command_is_found_only_after_the_configuration_was_read(call: Callable[..., Outcome]) -> None:
    call({"CNI_COMMAND": "FOO"}, "").failed(6)


@pytest.mark.parametrize(
    ("stdin", "code"),
    [
        ("", 6),
        ("[]", 6),
        ("5", 6),
        ('{"name": "net"} x', 6),
        ('{"name": "net"', 6),
        ('{"name": 5}', 6),
        ('{"name": "net", "cniVersion": 5}', 6),
        ('{"name": "net", "mtu": NaN}', 6),
        pytest.param("[" * 100000, 6, id="deep"),  # pytest has the ID in its environment, which is limited
        pytest.param('{"name": "net", "mtu": ' + "9" * 5000 + "}", 6, id="long number"),
        ("null", 7),
        ("{}", 7),
        ('{"name": ""}', 7),
        ('{"name": null}', 7),
        ('{"name": "a b"}', 7),
        ('{"name": "-a"}', 7),
    ],
)
def test_malformed_configurations_are_rejected(call: Callable[..., Outcome], stdin: str, code: int) -> None:
    for command in REQUIRED:
        call({**COMPLETE, "CNI_COMMAND": command}, stdin).failed(code)


class TestNesting:
    """Python 3.13 lets JSON nest by 10,000 levels, for which the stack of a daemon's thread is too small."""

    NESTED = (("[", "]"), ('{"a":', "}"), ('[{"a":', "}]"), ('["]",', "]"))

    def config(self, value: str) -> bytes:
        return f'{{"name": "net", "x": {value}}}'.encode()

    @pytest.mark.parametrize(("begin", "end"), NESTED)
    def test_a_configuration_of_too_many_levels_is_rejected(self, begin: str, end: str) -> None:
        with pytest.raises(PluginError, match="nested deeper than 100 levels") as raised:
            read_config(self.config(begin * 100 + "1" + end * 100))
        assert raised.value.code == 6

    @pytest.mark.parametrize(("begin", "end"), NESTED)
    def test_fewer_levels_are_accepted_at_any_number_of_values(self, begin: str, end: str) -> None:
        value = begin * 49 + "1" + end * 49
        assert read_config(self.config(f"[{', '.join([value] * 200)}]")).name == "net"

    @pytest.mark.parametrize("text", ["[" * 200, '\\"' + "[" * 200, "[" * 200 + "\\\\", '\\n{\\\\\\"' * 200])
    def test_brackets_in_strings_do_not_count(self, text: str) -> None:
        assert read_config(self.config(f'["{text}", "{text}"]')).name == "net"


def test_a_closed_standard_input_is_an_input_failure(call: Callable[..., Outcome]) -> None:
    assert call(COMPLETE, None).failed(5).startswith("error reading from stdin")


def test_closed_standard_output_and_error_crash_nothing(tmp_path: Path) -> None:
    environment = {**COMPLETE, "CNI_COMMAND": "DEL", "CONTRAIL_CNI_CONFIG": str(tmp_path / "none")}
    config = json.dumps({"name": "net", "cniVersion": "1.0.0", "contrail": {"state-dir": str(tmp_path)}})
    closed = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND]
    assert subprocess.run(closed, env=environment, input=config, text=True, timeout=20).returncode == 0


def test_a_closed_reader_of_the_result_fails_the_call(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as stdout:
        done = subprocess.run(COMMAND, env={"CNI_COMMAND": "VERSION"}, stdout=stdout, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert b"standard output: cannot be written" in done.stderr


def test_without_a_command_standard_error_says_what_this_is(call: Callable[..., Outcome]) -> None:
    for environment in ({}, {"CNI_COMMAND": ""}):
        outcome = call(environment, None)
        assert (outcome.status, outcome.stdout) == (0, "")
        assert "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0" in outcome.stderr


@pytest.mark.parametrize("stdin", [None, "", "garbage"])
def test_version_needs_only_the_command(call: Callable[..., Outcome], stdin: str | None) -> None:
    outcome = call({"CNI_COMMAND": "VERSION", "CNI_ARGS": "garbage"}, stdin).succeeded()
    assert outcome.document == {
        "cniVersion": "1.1.0",
        "supportedVersions": ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"],
    }
    assert outcome.stdout.count("\n") == 1


@pytest.mark.parametrize("version", ["0.0.1", "9.9.9", "1.1.1", "1.0", "v1.0.0", "x", "1.2.3.4", "9" * 5000])
def test_unsupported_versions_are_rejected_with_the_supported_ones(call: Callable[..., Outcome], version: str) -> None:
    stdin = json.dumps({"name": "net", "cniVersion": version})
    for command in ("ADD", "DEL"):
        message = call({**COMPLETE, "CNI_COMMAND": command}, stdin).failed(1)
        assert message.startswith("incompatible CNI versions")
        assert f'config is "{cut(version)}", plugin supports ["0.1.0" "0.2.0"' in message


NO_VERSIONS = [(text, 6, "is not a version") for text in ("x", "1.2.3.4", "9" * 5000)]


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        (None, 1, "config version does not allow CHECK"),
        ("0.3.1", 1, "config version does not allow CHECK"),
        ("1.1.1", 1, "plugin version does not allow CHECK"),
        ("0.4", 1, "incompatible CNI versions"),
        ("0.9.0", 1, "incompatible CNI versions"),
        *NO_VERSIONS,
    ],
)
def test_check_is_allowed_only_by_some_versions(
    call: Callable[..., Outcome], version: str | None, code: int, message: str
) -> None:
    stdin = json.dumps({"name": "net", **({"cniVersion": version} if version else {})})
    assert message in call({**COMPLETE, "CNI_COMMAND": "CHECK"}, stdin).failed(code)


@pytest.mark.parametrize("command", ["GC", "STATUS"])
@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        (None, 1, "config version does not allow {}"),
        ("1.0.0", 1, "config version does not allow {}"),
        ("9.0.0", 1, "plugin version does not allow {}"),
        ("1.1", 1, "incompatible CNI versions"),
        *NO_VERSIONS,
    ],
)
def test_gc_and_status_are_allowed_from_110_on(
    call: Callable[..., Outcome], command: str, version: str | None, code: int, message: str
) -> None:
    stdin = json.dumps({"name": "net", **({"cniVersion": version} if version else {})})
    environment = {"CNI_COMMAND": command, "CNI_PATH": "/opt/cni/bin"}
    assert message.format(command) in call(environment, stdin).failed(code)


def test_errors_have_the_version_of_the_configuration(call: Callable[..., Outcome]) -> None:
    stdin = json.dumps({"name": "net", "cniVersion": "0.3.1", "ipam": {"type": "host-local"}})
    assert call(COMPLETE, stdin).document["cniVersion"] == "0.3.1"
    assert call(COMPLETE, "").document["cniVersion"] == "1.1.0"


def test_a_path_that_is_not_a_network_namespace_is_named(call: Callable[..., Outcome], tmp_path: Path) -> None:
    for path in ("/run/netns/not-there", str(tmp_path), "/etc/hostname", "/proc/self/ns/pid", "a\udcffb"):
        message = call({**COMPLETE, "CNI_NETNS": path}).failed(4)
        assert message.startswith("CNI_NETNS")


def test_an_internal_error_is_answered_and_its_traceback_logged() -> None:
    program = (
        "import cni_contrail.plugin as plugin\n"
        "def broken(call): raise ZeroDivisionError('a bug')\n"
        "plugin.pod_of = broken\n"
        "raise SystemExit(plugin.main())\n"
    )
    command = [COMMAND[0], "-c", program]
    outcome = run(command, {**COMPLETE, "CONTRAIL_CNI_CONFIG": "/none"}, GOOD)
    assert outcome.failed(999) == "ZeroDivisionError: a bug"
    assert "Traceback" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


class TestBesideTheReferencePlugin:
    """The same environment and input into Debian's `loopback`: equal codes, and equal texts where they are fixed."""

    def test_it_is_installed(self) -> None:
        assert os.path.exists(LOOPBACK)

    @pytest.mark.parametrize("command", ["ADD", "DEL", "CHECK"])
    @pytest.mark.parametrize(
        "stdin",
        ["", "[]", "null", "{}", '{"name": 5}', '{"name": "a b"}', '{"name": "x"} x', '{"name":"x","cniVersion":5}']
        + [f'{{"name": "x", "cniVersion": "{version}"}}' for version in ("9.9.9", "x", "0.0.1", "0.9.0", "1.2.3.4")],
    )
    def test_input_errors_are_equal(self, call: Callable[..., Outcome], command: str, stdin: str) -> None:
        environment = {**COMPLETE, "CNI_COMMAND": command}
        theirs = run([LOOPBACK], environment, stdin).document
        ours = call(environment, stdin).document
        assert ours["code"] == theirs["code"]
        if theirs["code"] != 6:  # a decoder's own words
            assert ours["msg"] == theirs["msg"]

    @pytest.mark.parametrize("command", ["ADD", "DEL", "CHECK"])
    @pytest.mark.parametrize(
        "changed",
        [{name: ""} for name in COMPLETE if name != "CNI_COMMAND"]
        + [{"CNI_CONTAINERID": "", "CNI_IFNAME": ""}]
        + [{"CNI_CONTAINERID": text} for text in ("a:b", "_x", "a b")]
        + [{"CNI_IFNAME": text} for text in ("0123456789abcdef", ".", "..", "a/b", "a:b", "a b")],
        ids=str,
    )
    def test_environment_errors_are_equal(
        self, call: Callable[..., Outcome], command: str, changed: dict[str, str]
    ) -> None:
        environment = {**COMPLETE, "CNI_COMMAND": command, **changed}
        theirs = run([LOOPBACK], environment, GOOD)
        ours = call(environment, GOOD)
        if theirs.stdout and "code" in theirs.document and theirs.document["code"] == 4:
            assert (ours.document["code"], ours.document["msg"]) == (4, theirs.document["msg"])
        elif command == "DEL":  # its DEL of a namespace that is not there succeeds, and so does ours
            assert (ours.status, theirs.status) == (0, 0)
        else:  # past the checks: each fails in its own way on a namespace that is not there
            assert ours.status == theirs.status == 1

    def test_version_is_equal(self, call: Callable[..., Outcome]) -> None:
        theirs = run([LOOPBACK], {"CNI_COMMAND": "VERSION"}, None).document
        ours = call({"CNI_COMMAND": "VERSION"}, None).document
        assert ours.keys() == theirs.keys()
        assert set(theirs["supportedVersions"]) <= set(ours["supportedVersions"])  # Debian's is older

    def test_a_closed_input_is_equal(self, call: Callable[..., Outcome]) -> None:
        assert run([LOOPBACK], COMPLETE, None).document["code"] == call(COMPLETE, None).document["code"] == 5


class TestOwnNamespace:
    def test_it_is_rejected_and_nothing_changes(self, plugin: Plugin, node: Netns, pod: PodSandbox) -> None:
        for command in ("ADD", "CHECK", "DEL"):
            environment = plugin.environment(command, pod, CNI_NETNS=node.path)
            document = plugin.config(prevResult={"cniVersion": "1.0.0"})
            assert node.path in plugin.call(environment, json.dumps(document)).failed(8)
        assert plugin.files() == []
        assert node.links() == []

    @pytest.mark.parametrize("word", ["1", "TRUE", "true"])
    def test_it_is_accepted_if_the_runtime_overrides(
        self, plugin: Plugin, node: Netns, pod: PodSandbox, word: str
    ) -> None:
        environment = plugin.environment("ADD", pod, CNI_NETNS=node.path, CNI_NETNS_OVERRIDE=word)
        plugin.call(environment, json.dumps(plugin.config())).failed(11)  # past the check: there is no agent


LONG = 5_000  # characters; the fork server of the tests reads a request at once
LONG_VALUES = {
    "container": {"container": "c" * LONG},
    "pod": {"name": "b" * LONG},
    "namespace": {"namespace": "a" * LONG},
    "uid": {"uid": "u" * LONG},
    "netns": {"netns": "/" + "n" * LONG},
}


@pytest.mark.parametrize("command", ["ADD", "CHECK", "DEL"])
@pytest.mark.parametrize("values", LONG_VALUES.values(), ids=LONG_VALUES)
@pytest.mark.usefixtures("agent")
def test_long_values_of_the_environment_are_cut(
    plugin: Plugin, pod: PodSandbox, command: str, values: dict[str, str]
) -> None:
    pod = dataclasses.replace(pod, **values)
    document = plugin.config(prevResult={"cniVersion": "1.0.0"} if command == "CHECK" else None)
    outcome = plugin.call(plugin.environment(command, pod), json.dumps(document))
    assert len(outcome.stdout) < 2000
    assert len(outcome.stderr) < 2000
    assert (outcome.status == 0) is (command == "DEL")


def test_a_command_of_any_length_is_cut(plugin: Plugin, pod: PodSandbox) -> None:
    outcome = plugin.call({**plugin.environment("ADD", pod), "CNI_COMMAND": "x" * LONG}, json.dumps(plugin.config()))
    assert outcome.failed(4)
    assert len(outcome.stdout + outcome.stderr) < 2000


def test_del_succeeds_for_a_pod_whose_name_is_longer_than_any_file_name(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox
) -> None:
    """With those of namespace and cluster, the longest valid name has 323 characters, a file name at most 255."""
    pod = dataclasses.replace(pod, namespace="n" * 63, name="p" * 253)
    plugin.delete(pod).succeeded()
