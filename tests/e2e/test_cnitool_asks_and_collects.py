"""STATUS and GC, as libcni calls them through cnitool for a network of CNI 1.1.0."""

from tests.e2e.cnitool import Cnitool
from tests.e2e.interfaces import interfaces
from tests.e2e.node import Node
from tests.e2e.sandbox import Sandbox


def test_the_network_is_ready_while_the_agent_is(cnitool: Cnitool, sandbox: Sandbox) -> None:
    cnitool.run("status", sandbox)


def test_the_network_is_not_ready_without_the_agent(cnitool: Cnitool, node: Node, sandbox: Sandbox) -> None:
    node.kill()
    try:
        assert "9091" in cnitool.refused("status", sandbox), "the message names the agent that does not answer"
    finally:
        node.start()


def test_collecting_takes_down_what_cnitool_has_cached_and_then_asks_for_a_list(
    cnitool: Cnitool, node: Node, sandbox: Sandbox
) -> None:
    cnitool.add(sandbox)
    said = cnitool.refused("gc", sandbox)
    assert "cni.dev/valid-attachments" in said, "cnitool sends no list, which would mean that nothing is valid"
    assert interfaces(sandbox.ip) == {}
    assert node.machine.net.links() == []
    assert node.plugged(sandbox.container_id) == []
