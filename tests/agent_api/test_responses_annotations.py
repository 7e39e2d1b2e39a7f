"""Annotations in `/vm-cfg`: Contrail's parser reads every one; a value that it would corrupt is never served."""

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
from tests.support.served_agent import ServedAgent
from tests.support.upstream_plugin import read_annotations
from tests.support.virtual_machines import make_virtual_machine, sample_interface

NAMES = st.text(string.ascii_lowercase + string.digits + "-.", min_size=1, max_size=20)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(list(':{}"\\\n\x7f'))

FORBIDDEN = re.compile(r'[:{}"\\\x00-\x1f\x7f]')


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
def virtual_machines(draw: st.DrawFn, values: st.SearchStrategy[str]) -> VirtualMachine:
    listed = draw(st.lists(interfaces(values), min_size=1, max_size=4))
    virtual_machine = make_virtual_machine(interfaces=tuple(listed))
    return msgspec.structs.replace(
        virtual_machine, cluster=draw(values), project=draw(values), namespace=draw(values), pod=draw(values)
    )


def expected_annotations(virtual_machine: VirtualMachine, index: int) -> dict[str, str]:
    interface = virtual_machine.interfaces[index]
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
        "cluster": virtual_machine.cluster,
        "project": virtual_machine.project,
        "namespace": virtual_machine.namespace,
        "name": virtual_machine.pod,
        "index": f"{index}/{len(virtual_machine.interfaces)}",
        "network": interface.nad.split("/")[-1] if index and interface.nad else "default",
    } | {key: str(value) for key, value in chosen.items() if value is not None}


@given(virtual_machines(NAMES))
def test_contrails_parser_reads_every_annotation(virtual_machine: VirtualMachine) -> None:
    for index in range(len(virtual_machine.interfaces)):
        annotations = interface_annotations(virtual_machine, index)
        assert read_annotations(annotations) == expected_annotations(virtual_machine, index)


@given(virtual_machines(ANY_TEXT))
def test_a_value_is_served_unchanged_or_rejected(virtual_machine: VirtualMachine) -> None:
    for index in range(len(virtual_machine.interfaces)):
        expected = expected_annotations(virtual_machine, index)
        try:
            annotations = interface_annotations(virtual_machine, index)
        except UnservableVirtualMachineError:
            assert any(FORBIDDEN.search(value) for value in expected.values())
        else:
            assert read_annotations(annotations) == expected


@pytest.mark.parametrize("value", ["a:b", 'a"b', "a}", "{a", "a\\b", "a\nb", "a\x00b"])
async def test_a_forbidden_character_is_500_and_names_the_value(
    store: SqliteStore, served: ServedAgent, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    virtual_machine = make_virtual_machine(interfaces=(msgspec.structs.replace(sample_interface(), interface=value),))
    await store.put_virtual_machine(virtual_machine)
    async with served.tcp.get(f"/vm-cfg/{virtual_machine.name}?wait=5") as answer:
        assert answer.status == 500
        (error,) = (await answer.json()).values()
    assert "annotation interface: forbidden character" in error
    assert virtual_machine.name in error
    assert repr(value) in error
    assert error in caplog.text
