"""One run of the demo, from loading the manifests to the final search for leftovers."""

import contextlib
from collections.abc import Callable, Iterator

from cni_contrail.runtime.configuration import load_file
from cni_contrail.runtime.interrupts import interrupts_held
from cni_contrail.runtime.sandbox import inside, make_sandbox
from demo.container_runtime import ContainerRuntime
from demo.kernel_state import raise_loopback
from demo.node import DemoNode
from demo.output import inspection_commands
from demo.page_relay import listening_socket, start_relay
from demo.pods import DemoPods, Show
from demo.resources import DemoResources


def run_demo(resources: DemoResources, *, manifests: str, conflist: str, keep: bool, show: Show) -> list[str]:
    """Returns the findings, one sentence each. With `keep` it stops after CHECK and leaves everything running.

    Raises DemoError, CniRuntimeError or ContrailctlError if it cannot continue; everything was removed then.
    """
    network = load_file(conflist)
    with contextlib.ExitStack() as undo, listening_socket() as outside:
        undo.callback(_uninterrupted, resources.remove)
        resources.create()
        with inside(_create_node_namespace(resources)):
            show(f"starting the embedded node on {manifests}")
            # An interrupt between the start of the process and the registration of its clean-up would leak it.
            with interrupts_held():
                node = DemoNode(resources, manifests)
                undo.callback(_uninterrupted, node.stop)
            node.wait_until_ready()

            pods = DemoPods(node, ContainerRuntime(resources, network), show)
            findings = pods.bring_up()
            if keep:
                undo.pop_all()
                page = start_relay(outside, node.endpoint.url, node=node.pid, resources=resources)
                show(f"\n{inspection_commands(resources, node.endpoint.url, page, pods.sandboxes)}\n")
                return findings
            findings += pods.tear_down(resources)
            findings += _stop(node)
    findings += (f"namespace {namespace}: not removed" for namespace in resources.namespaces())
    return findings


def _uninterrupted(clean_up: Callable[[], object]) -> None:
    with interrupts_held():
        clean_up()


def _create_node_namespace(resources: DemoResources) -> str:
    path = make_sandbox(resources.node_namespace)
    raise_loopback(resources.node_namespace)
    return path


def _stop(node: DemoNode) -> Iterator[str]:
    status = node.stop()
    if status != 0:
        yield f"node: exited with status {status}"
