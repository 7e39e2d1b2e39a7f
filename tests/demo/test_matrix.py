"""The matrix of pings says who must reach whom, and each cell that is not so."""

import pytest

from cni_contrail.runtime.attachment import Attachment
from contrail_config.objects import InterfaceAddress, VirtualMachine, VirtualMachineInterface
from demo.container_runtime import PodSandbox
from demo.matrix import Answer, Cell, cells, matrix_table, wrong
from manager.api.types import PodState, PodView

PODS = "pods"
BLUE, RED = "blue", "red"


def sandbox(name: str, **addresses: str) -> PodSandbox:
    """A pod with an address in each of the networks."""
    interfaces = tuple(
        VirtualMachineInterface(
            uuid=f"{name}-{network}",
            mac="02:00:00:00:00:01",
            network_uuid=network,
            network=("default-domain", "k8s-shop", network),
            addresses=(InterfaceAddress(address, 24),),
            nad=None if network == PODS else f"shop/{network}",
        )
        for network, address in addresses.items()
    )
    machine = VirtualMachine(name, f"k8s__shop__{name}", "k8s", "k8s-shop", "shop", name, "node", interfaces)
    pod = PodView("shop", name, name, "node", PodState.READY, machine=machine)
    return PodSandbox(pod, name, Attachment("c" * 64, f"/run/netns/{name}", "eth0"))


def wanted(*sandboxes: PodSandbox) -> list[tuple[str, str, str, bool]]:
    return [(cell.source.pod.name, cell.target.pod.name, cell.address, cell.must_reach) for cell in cells(sandboxes)]


def test_pods_reach_each_other_in_the_networks_that_they_share_and_in_no_other() -> None:
    first, second = sandbox("a", pods="10.0.0.2", blue="10.1.0.2"), sandbox("b", pods="10.0.0.3", red="10.2.0.3")
    assert wanted(first, second) == [
        ("a", "b", "10.0.0.3", True),
        ("a", "b", "10.2.0.3", False),
        ("b", "a", "10.0.0.2", True),
        ("b", "a", "10.1.0.2", False),
    ]


def test_an_address_that_another_pod_has_in_a_network_of_the_source_proves_nothing() -> None:
    """Networks may have equal subnets."""
    pods = sandbox("a", blue="10.1.0.2"), sandbox("b", red="10.1.0.3"), sandbox("c", blue="10.1.0.3")
    assert ("a", "b", "10.1.0.3", False) not in wanted(*pods)
    assert ("a", "c", "10.1.0.3", True) in wanted(*pods)


def test_a_pod_asks_from_its_address_in_the_network_that_both_have() -> None:
    pods = sandbox("a", blue="10.1.0.2", red="10.1.0.3"), sandbox("b", red="10.1.0.4")
    asked = [(cell.address, cell.source_address) for cell in cells(pods)]
    assert asked == [("10.1.0.4", "10.1.0.3"), ("10.1.0.2", None), ("10.1.0.3", "10.1.0.4")]


@pytest.mark.parametrize(
    ("must_reach", "is_answered", "sentences"),
    [
        (True, True, []),
        (False, False, []),
        (True, False, ["pod shop/a does not reach 10.1.0.3 of pod shop/b in shop/blue"]),
        (False, True, ["pod shop/a reaches 10.1.0.3 of pod shop/b in shop/blue"]),
    ],
)
def test_each_wrong_cell_is_a_sentence_and_marks_its_row(
    must_reach: bool, is_answered: bool, sentences: list[str]
) -> None:
    cell = Cell(sandbox("a"), sandbox("b"), "shop/blue", "10.1.0.3", must_reach)
    answers = [Answer(cell, is_answered)]
    assert list(wrong(answers)) == sentences
    assert ("WRONG" in matrix_table(answers)) is bool(sentences)
