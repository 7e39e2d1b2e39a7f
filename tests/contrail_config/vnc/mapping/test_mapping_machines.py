"""Virtual machines and interfaces: to the server and back."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.objects import VirtualMachine
from contrail_config.vnc.mapping import annotations
from contrail_config.vnc.mapping.machines import interface_bodies, machine_annotation, machine_body, read_machine
from tests.support.config_object_strategies import interfaces, virtual_machines
from tests.support.virtual_machines import make_virtual_machine


def committed(machine: VirtualMachine) -> dict[str, object]:
    body = machine_body(machine)
    pairs = annotations.from_object(body) | {annotations.MACHINE: machine_annotation(machine)}
    return {**body, "annotations": annotations.to_map(pairs)}


@given(virtual_machines())
def test_a_machine_is_read_as_it_was_committed(machine: VirtualMachine) -> None:
    assert read_machine(committed(machine), "k8s") == machine


@given(virtual_machines())
def test_a_machine_does_not_exist_before_it_is_committed(machine: VirtualMachine) -> None:
    assert read_machine(machine_body(machine), "k8s") is None


@given(virtual_machines())
def test_a_machine_of_another_cluster_is_not_ours(machine: VirtualMachine) -> None:
    assert read_machine(committed(machine), "other") is None


@given(virtual_machines())
def test_a_machine_has_the_annotations_that_upstream_reads(machine: VirtualMachine) -> None:
    body = machine_body(machine)
    assert (body["uuid"], body["fq_name"], body["server_type"]) == (machine.uuid, [machine.name], "container")
    assert annotations.from_object(body) == {
        "kind": "Pod",
        "owner": "k8s",
        "cluster": machine.cluster,
        "project": machine.project,
        "namespace": machine.namespace,
        "name": machine.pod,
        "k8s_uuid": machine.uuid,
        "manager": "contrail-multinet",
    }


@given(virtual_machines())
def test_every_interface_is_complete_when_it_is_created(machine: VirtualMachine) -> None:
    bodies = interface_bodies(machine)
    for index, (body, interface) in enumerate(zip(bodies, machine.interfaces, strict=True)):
        pairs = annotations.from_object(body)
        assert body["uuid"] == interface.uuid
        assert body["fq_name"][1:] == [machine.project, f"{machine.pod}__{interface.uuid}"]
        assert pairs["index"] == f"{index}/{len(machine.interfaces)}"
        assert pairs["families"].split(",") == [str(address.family) for address in interface.addresses]
        assert body["virtual_machine_interface_mac_addresses"] == {"mac_address": [interface.mac]}
        (network,), (owner,) = body["virtual_network_refs"], body["virtual_machine_refs"]
        assert (network["uuid"], network["to"]) == (interface.network_uuid, list(interface.network))
        assert (owner["uuid"], owner["to"]) == (machine.uuid, [machine.name])


@given(interfaces(), st.sampled_from(list(':{}"\\\n\x7f')))
def test_text_that_upstreams_plugin_cannot_read_is_refused(interface: object, character: str) -> None:
    broken = msgspec.structs.replace(interface, config_name=f"a{character}")  # type: ignore[type-var]  # a struct
    with pytest.raises(ValueError, match="forbidden character"):
        interface_bodies(make_virtual_machine(interfaces=(broken,)))  # type: ignore[arg-type]  # an interface


def test_fields_of_a_newer_release_are_kept() -> None:
    machine = make_virtual_machine()
    stored = {"futureKey": 1, **msgspec.json.decode(machine_annotation(machine))}
    assert msgspec.json.decode(machine_annotation(machine, stored))["futureKey"] == 1


@pytest.mark.parametrize("text", ["nonsense", "{}"])
def test_a_marker_that_cannot_be_read_is_named(text: str) -> None:
    machine = make_virtual_machine()
    pairs = {annotations.CLUSTER: "k8s", annotations.MACHINE: text}
    item = {**machine_body(machine), "annotations": annotations.to_map(pairs)}
    with pytest.raises(ValueError, match=f"virtual-machine {machine.uuid}: annotation machine"):
        read_machine(item, "k8s")


def test_a_marker_of_another_machine_is_refused() -> None:
    item = {**committed(make_virtual_machine()), "fq_name": ["k8s__default__other"]}
    with pytest.raises(ValueError, match="the annotation is that of k8s__default__p1"):
        read_machine(item, "k8s")
