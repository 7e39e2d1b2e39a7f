"""The tables of CNI errors and versions in `docs/`, compared with the code and with a running plugin."""

import json
import re

import pytest

from cni_contrail.errors import Code
from cni_contrail.protocol.versions import SUPPORTED
from tests.support.documentation import table
from tests.support.plugin import Outcome, Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod


def test_every_error_code_has_a_row_with_cause_and_cure_in_order() -> None:
    documented = [(int(row[0]), row[1].strip("`")) for row in table("troubleshooting", "CNI errors")[1:]]
    assert documented == [(code.value, code.name) for code in sorted(Code)]
    assert all(len(row) == 4 and all(row) for row in table("troubleshooting", "CNI errors"))


def test_every_version_has_its_column() -> None:
    assert table("cni-conformance", "Versions")[0] == ["command", *SUPPORTED]


@pytest.mark.parametrize("version", SUPPORTED)
def test_each_command_is_served_where_the_table_says_so_and_nowhere_else(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, version: str
) -> None:
    serve_pod(agent)
    heads, *commands = table("cni-conformance", "Versions")
    said = {command: row[heads.index(version)] for row in commands for command in re.split(", ", row[0])}
    added = plugin.add(pod, version=version)
    served = {
        "ADD": added,
        "VERSION": plugin.call({"CNI_COMMAND": "VERSION"}, json.dumps({"cniVersion": version})),
        "CHECK": plugin.check(pod, previous=added.document, version=version),
        "STATUS": plugin.status(version=version),
        "GC": plugin.gc([pod], version=version),
        "DEL": plugin.delete(pod, version=version),
        "in a chain": plugin.add(pod, version=version, prevResult={"cniVersion": version}),
    }
    for command, outcome in served.items():
        assert (outcome.status == 0) == (said[command] == "yes"), (command, outcome)
    assert said["results"] == form(added)


def form(added: Outcome) -> str:
    if "ips" not in added.document:
        return "`ip4`, `ip6`"
    if "version" in added.document["ips"][0]:
        return "lists, with families"
    return "lists, with `mtu`" if "mtu" in added.document["interfaces"][0] else "lists"
