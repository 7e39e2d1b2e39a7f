"""Any standard input, CNI_ARGS and agent response: one answer, no crash, no leak."""

import copy
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.netns import Netns
from tests.support.plugin import Outcome, Plugin, PodSandbox
from tests.support.scripted_agents import (
    ReceivedRequest,
    Reply,
    ScriptedAgent,
    ServePod,
    Vmi,
    make_vmis,
    node_agent_item,
    vrouter_agent_item,
)

BUG = 999
COMMANDS = ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"]

few = settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
texts = st.text(max_size=12)
numbers = st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
documents = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
config_keys = st.sampled_from(
    [
        *("cniVersion", "name", "type", "args", "capabilities", "runtimeConfig", "prevResult", "dns", "ipam", "ipMasq"),
        *("contrail", "plugins", "cni.dev/valid-attachments", "cni.dev/attachments"),
    ]
)
setting_keys = st.sampled_from(
    [
        *("mode", "network-name", "nad", "cluster-name", "vrouter-ip", "vrouter-port", "sysctl-dir", "vif-type"),
        *("mtu", "log-level", "meta-plugin", "parent-interface"),
    ]
)
item_keys = st.sampled_from(
    [
        *("id", "vm-uuid", "vn-id", "mac-address", "ip-address", "plen", "gateway", "dns-server", "v6-ip-address"),
        *("v6-plen", "v6-gateway", "v6-dns-server", "mtu", "routes", "annotations", "vlan-id"),
    ]
)
likely: st.SearchStrategy[Any] = st.sampled_from(
    [
        *("10.1.0.9", "10.1.0.9/24", "0.0.0.0", "::", "fd00::9", "::ffff:10.0.0.1", "255.255.255.255", "eth1", "all"),
        *("02:00:00:00:00:99", "ff:ff:ff:ff:ff:ff", "159b591c-e57e-11f1-b951-02fc00000001", "..", "/", "a/b", "%d"),
        *(0, 1, 32, 128, 68, 1280, 65535, [], {}, ""),
    ]
)
routes = st.lists(st.fixed_dictionaries({"dst": likely | texts}, optional={"gw": likely | texts}), max_size=3)
annotations = st.lists(
    st.builds(
        "{{{}:{}}}".format,
        st.sampled_from(["index", "interface", "attachment", "default-gw", "nad", "network", "config-name"]) | texts,
        st.sampled_from(["0/1", "0/2", "1/2", "eth0", "eth1", "true", "none", "ipv4", "lo", "a:b", "all"]) | texts,
    ),
    max_size=4,
)
environment_values = st.binary(max_size=30).filter(lambda value: b"\0" not in value).map(os.fsdecode)


@pytest.fixture
def no_leak(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns) -> Callable[[Outcome], None]:
    """Checks that a call gave one answer without internal error, and that nothing is left after DEL.

    Directories and agent are set for the whole node, so that no configuration can point elsewhere.
    """
    plugin.settings["poll-timeout"] = 0.02
    plugin.node_file.write_text(json.dumps(plugin.settings))

    def check(outcome: Outcome) -> None:
        assert "Traceback" not in outcome.stderr
        if outcome.stdout:
            assert outcome.document.get("code") != BUG
            assert outcome.stdout.count("\n") == 1
        agent.clear_behaviours()
        plugin.delete(pod, settings={"mode": "delegated"}).succeeded()
        assert (plugin.node.links(), sandbox.links(), plugin.files(), agent.ports) == ([], [], [], {})

    return check


@few
@given(
    command=st.sampled_from(COMMANDS),
    stdin=st.binary(max_size=200) | documents.map(lambda each: json.dumps(each).encode()),
)
def test_any_standard_input_gets_one_answer_and_leaks_nothing(
    plugin: Plugin, pod: PodSandbox, no_leak: Callable[[Outcome], None], command: str, stdin: bytes
) -> None:
    no_leak(plugin.call(plugin.environment(command, pod), stdin))


@few
@given(
    command=st.sampled_from(COMMANDS),
    changes=st.dictionaries(config_keys, documents, max_size=3),
    section=st.dictionaries(setting_keys, documents | likely, max_size=2),
    version=st.sampled_from(["0.1.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]),
)
@example("CHECK", {"prevResult": {"interfaces": [{"sandbox": "x", "name": "eth0", "mac": 5}]}}, {}, "1.0.0")
@example("ADD", {"prevResult": {"interfaces": [{"sandbox": 5}]}}, {}, "1.1.0")
@example("CHECK", {"prevResult": {"interfaces": [{"sandbox": "x", "name": 5}], "routes": [{"dst": []}]}}, {}, "1.0.0")
@example("GC", {"cni.dev/valid-attachments": [{"containerID": "", "ifname": "/../.."}]}, {}, "1.1.0")
def test_configurations_with_any_values_leak_nothing(
    agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    serve_pod: ServePod,
    no_leak: Callable[[Outcome], None],
    command: str,
    changes: dict[str, Any],
    section: dict[str, Any],
    version: str,
) -> None:
    serve_pod(agent, 2)
    config = {**plugin.config(version=version, settings=section), **changes}
    if command == "CHECK":
        plugin.add(pod).succeeded()
    no_leak(plugin.call(plugin.environment(command, pod), json.dumps(config)))


@few
@given(
    command=st.sampled_from(COMMANDS),
    arguments=environment_values
    | st.lists(
        st.tuples(
            st.sampled_from(["K8S_POD_NAME", "K8S_POD_NAMESPACE", "K8S_POD_UID", "MAC", "IP", "IgnoreUnknown", ""]),
            environment_values,
        ).map("=".join),
        max_size=5,
    ).map(";".join),
)
def test_any_cni_args_leak_nothing(
    agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    serve_pod: ServePod,
    no_leak: Callable[[Outcome], None],
    command: str,
    arguments: str,
) -> None:
    serve_pod(agent, 2)
    config = json.dumps(plugin.config())
    no_leak(plugin.call(plugin.environment(command, pod, CNI_ARGS=arguments), config))


def served(vmis: list[Vmi], *, with_vrouter_agent: bool) -> list[dict[str, Any]]:
    return [vrouter_agent_item(vmi) if with_vrouter_agent else node_agent_item(vmi) for vmi in vmis]


@few
@given(
    with_vrouter_agent=st.booleans(),
    mode=st.sampled_from(["thick", "delegated"]),
    changes=st.lists(
        st.tuples(st.integers(0, 2), item_keys, documents | likely | routes | annotations), min_size=1, max_size=3
    ),
)
def test_lists_with_any_values_leak_nothing(
    agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    no_leak: Callable[[Outcome], None],
    with_vrouter_agent: bool,
    mode: str,
    changes: list[tuple[int, str, Any]],
) -> None:
    items = copy.deepcopy(served(make_vmis(3, uid=pod.uid), with_vrouter_agent=with_vrouter_agent))
    for position, key, value in changes:
        items[position][key] = value
    agent.before(lambda seen: Reply(200, items) if seen.method == "GET" else None)
    no_leak(plugin.add(pod, settings={"mode": mode}))


@few
@given(
    answers=st.lists(
        st.builds(
            Reply,
            status=st.sampled_from([200, 200, 200, 204, 301, 400, 404, 500, 503, 999]),
            raw=st.binary(max_size=100) | documents.map(lambda each: json.dumps(each).encode()),
            truncated=st.booleans(),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_response_of_the_agent_leaks_nothing(
    agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    serve_pod: ServePod,
    no_leak: Callable[[Outcome], None],
    answers: list[Reply],
) -> None:
    """Replaces its first responses; later ones are normal."""
    serve_pod(agent, 2)
    left = list(answers)

    def answer(seen: ReceivedRequest) -> Reply | None:
        return left.pop(0) if left else None

    agent.before(answer)
    no_leak(plugin.add(pod))
