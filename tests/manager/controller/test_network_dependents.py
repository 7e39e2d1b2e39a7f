"""NADs that depend on a network: each on one, and none once it is removed."""

from manager.controller.network_dependents import NetworkDependents

RED = ("default-domain", "k8s-red", "red")
BLUE = ("default-domain", "k8s-blue", "blue")


def test_the_nads_of_a_network_are_returned_once() -> None:
    dependents = NetworkDependents()
    for nad, network in (("a/1", RED), ("a/2", RED), ("a/3", BLUE)):
        dependents.add(nad, network)
    assert dependents.pop(RED) == {"a/1", "a/2"}
    assert dependents.pop(RED) == set()
    assert len(dependents) == 1


def test_a_nad_depends_on_its_last_network_only() -> None:
    dependents = NetworkDependents()
    dependents.add("a/1", RED)
    dependents.add("a/1", BLUE)
    assert dependents.pop(RED) == set()
    assert dependents.pop(BLUE) == {"a/1"}


def test_a_discarded_nad_leaves_nothing() -> None:
    dependents = NetworkDependents()
    dependents.add("a/1", RED)
    dependents.add("a/2", RED)
    dependents.discard("a/1")
    dependents.discard("a/1")
    assert dependents.pop(RED) == {"a/2"}
    assert vars(dependents) == vars(NetworkDependents())
