"""Upstream's parser of annotations reads every list that is told; a value that it would spoil is told to nobody."""

import re
import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_api.errors import UnservableVirtualMachineError
from agent_api.responses import interface_annotations
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import DefaultGateway, VirtualMachine, VirtualMachineInterface
from tests.support.agent import ServedAgent
from tests.support.machines import make_machine, sample_interface
from tests.support.upstream_plugin import read_annotations

NAMES = st.text(string.ascii_lowercase + string.digits + "-.", min_size=1, max_size=20)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(list(':{}"\\\n\x7f'))

SPOILED = re.compile(r'[:{}"\\\x00-\x1f\x7f]')


@st.composite
def interfaces(draw: st.DrawFn, values: st.SearchStrategy[str]) -> VirtualMachineInterface:
    return msgspec.structs.replace(
        sample_interface(),
        nad=draw(st.none() | st.builds("{}/{}".format, values, values)),
        config_name=draw(st.none() | values),
        interface=draw(st.none() | values),
        attachment=draw(st.none() | values),
        default_gw=draw(st.none() | st.sampled_from(DefaultGateway)),
    )


@st.composite
def machines(draw: st.DrawFn, values: st.SearchStrategy[str]) -> VirtualMachine:
    listed = draw(st.lists(interfaces(values), min_size=1, max_size=4))
    machine = make_machine(interfaces=tuple(listed))
    return msgspec.structs.replace(
        machine, cluster=draw(values), project=draw(values), namespace=draw(values), pod=draw(values)
    )


def expected_annotations(machine: VirtualMachine, index: int) -> dict[str, str]:
    interface = machine.interfaces[index]
    chosen = {
        "interface": interface.interface,
        "nad": interface.nad,
        "config-name": interface.config_name,
        "attachment": interface.attachment,
        "default-gw": interface.default_gw,
    }
    return {
        "kind": "Pod",
        "owner": "k8s",
        "cluster": machine.cluster,
        "project": machine.project,
        "namespace": machine.namespace,
        "name": machine.pod,
        "index": f"{index}/{len(machine.interfaces)}",
        "network": interface.nad.split("/")[-1] if index and interface.nad else "default",
    } | {key: str(value) for key, value in chosen.items() if value is not None}


@given(machines(NAMES))
def test_upstream_reads_every_annotation_that_is_told(machine: VirtualMachine) -> None:
    for index in range(len(machine.interfaces)):
        told = interface_annotations(machine, index)
        assert read_annotations(told) == expected_annotations(machine, index)


@given(machines(ANY_TEXT))
def test_a_value_is_told_as_it_is_or_not_at_all(machine: VirtualMachine) -> None:
    for index in range(len(machine.interfaces)):
        expected = expected_annotations(machine, index)
        try:
            told = interface_annotations(machine, index)
        except UnservableVirtualMachineError:
            assert any(SPOILED.search(value) for value in expected.values())
        else:
            assert read_annotations(told) == expected


@pytest.mark.parametrize("value", ["a:b", 'a"b', "a}", "{a", "a\\b", "a\nb", "a\x00b"])
async def test_a_machine_with_a_value_that_would_be_spoiled_is_an_error_that_names_it(
    store: SqliteStore, served: ServedAgent, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    machine = make_machine(interfaces=(msgspec.structs.replace(sample_interface(), interface=value),))
    await store.put_virtual_machine(machine)
    async with served.tcp.get(f"/vm-cfg/{machine.name}?wait=5") as answer:
        assert answer.status == 500
        (error,) = (await answer.json()).values()
    assert "annotation interface: forbidden character" in error
    assert machine.name in error
    assert repr(value) in error
    assert error in caplog.text
