"""STATUS and GC through cnitool, as libcni calls them for a network of CNI 1.1.0."""

from tests.e2e.cnitool import Cnitool
from tests.e2e.interfaces import interfaces
from tests.e2e.node import Node
from tests.e2e.sandbox import Sandbox


def test_status_succeeds_while_the_agent_is_ready(cnitool: Cnitool, sandbox: Sandbox) -> None:
    cnitool.run("status", sandbox)


def test_status_fails_without_the_agent(cnitool: Cnitool, node: Node, sandbox: Sandbox) -> None:
    node.kill()
    try:
        assert "9091" in cnitool.rejected("status", sandbox), "the message names the unreachable agent"
    finally:
        node.start()


def test_gc_removes_cached_attachments_and_fails_without_a_list_of_valid_ones(
    cnitool: Cnitool, node: Node, sandbox: Sandbox
) -> None:
    cnitool.add(sandbox)
    message = cnitool.rejected("gc", sandbox)
    assert "cni.dev/valid-attachments" in message, "cnitool sends no list, which must not mean that none is valid"
    assert interfaces(sandbox.ip) == {}
    assert node.host.net.links() == []
    assert node.plugged(sandbox.container_id) == []
