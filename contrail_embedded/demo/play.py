"""One run of the demo, from the manifests to the last look for leftovers."""

import contextlib
import json
from collections.abc import Callable, Iterator

from cni_contrail.runtime.configuration import load_file
from cni_contrail.runtime.interrupts import interrupts_held
from cni_contrail.runtime.sandbox import inside, make_sandbox
from contrail_embedded.demo.kernel import raise_loopback
from contrail_embedded.demo.node import Node
from contrail_embedded.demo.place import DemoDirectory
from contrail_embedded.demo.pods import PodsOnNode, Say
from contrail_embedded.demo.runtime_player import RuntimePlayer
from contrail_embedded.demo.show import how_to_look


def play(place: DemoDirectory, *, manifests: str, conflist: str, keep: bool, say: Say) -> list[str]:
    """Returns what did not hold, one sentence each. With `keep` it ends after CHECK and leaves all running.

    Raises DemoError, CniRuntimeError or ContrailctlError if it cannot go on; nothing is left running then.
    """
    network = load_file(conflist)
    with contextlib.ExitStack() as undo:
        undo.callback(_held, place.remove)
        place.make()
        _write_plugin_settings(place)
        with inside(_make_node_namespace(place)):
            say(f"starting the embedded node on {manifests}")
            with interrupts_held():
                node = Node(place, manifests)
                undo.callback(_held, node.stop)
            node.wait_until_ready()

            pods = PodsOnNode(node, RuntimePlayer(place, network), say)
            findings = pods.bring_up()
            if keep:
                undo.pop_all()
                say(f"\n{how_to_look(place, node.endpoint.url, pods.sandboxes)}\n")
                return findings
            findings += pods.take_down(place)
            findings += _stop(node)
    findings += (f"namespace {namespace} is left" for namespace in place.namespaces())
    return findings


def _held(clean_up: Callable[[], object]) -> None:
    with interrupts_held():
        clean_up()


def _write_plugin_settings(place: DemoDirectory) -> None:
    settings = {"agent-socket": place.agent_socket, "state-dir": place.attachment_records}
    with open(place.plugin_settings, "w") as file:
        json.dump(settings, file)


def _make_node_namespace(place: DemoDirectory) -> str:
    path = make_sandbox(place.node_namespace)
    raise_loopback(place.node_namespace)
    return path


def _stop(node: Node) -> Iterator[str]:
    status = node.stop()
    if status != 0:
        yield f"the node ended with status {status}"
