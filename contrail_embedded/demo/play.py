"""One run of the demo, from the manifests to the last look for leftovers."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence

from cni_contrail.runtime.configuration import load_file
from cni_contrail.runtime.errors import CniRuntimeError
from cni_contrail.runtime.sandbox import make_sandbox
from contrail_config.views import PodState, PodView
from contrail_embedded.demo.comparison import differences, result_differences
from contrail_embedded.demo.kernel import read_links, read_routes
from contrail_embedded.demo.leftovers import leftovers
from contrail_embedded.demo.node import Node
from contrail_embedded.demo.place import Place
from contrail_embedded.demo.runtime_player import RuntimePlayer, Sandbox
from contrail_embedded.demo.show import how_to_look, sandbox_table
from contrailctl.agent import Agent
from contrailctl.manager import Manager

Say = Callable[[str], None]

_CLUSTER = "k8s"


def play(place: Place, *, manifests: str, conflist: str, keep: bool, say: Say) -> list[str]:
    """Returns what did not hold, one sentence each. With `keep` it ends after CHECK and leaves all running.

    Raises DemoError, CniRuntimeError or ContrailctlError if it cannot go on; nothing is left running then.
    """
    with contextlib.ExitStack() as undo:
        undo.callback(place.remove)
        _prepare(place)
        node = Node(place, manifests)
        undo.callback(node.stop)
        say(f"starting the embedded node on {manifests}")
        node.wait_until_ready()
        pods = Manager(node.endpoint).pods()
        findings = list(_not_served(pods))

        player = RuntimePlayer(place, load_file(conflist))
        sandboxes = [player.make(pod) for pod in pods if pod.state is PodState.READY]
        findings += _step("ADD", sandboxes, lambda sandbox: _attach(player, sandbox), say)
        say(f"\n{sandbox_table(sandboxes)}\n")
        findings += _step("CHECK", sandboxes, lambda sandbox: _failure(player.check, sandbox), say)
        if keep:
            say(f"\n{how_to_look(place, node.endpoint.url, sandboxes)}\n")
            undo.pop_all()
            return findings

        findings += _step("DEL", sandboxes, lambda sandbox: _failure(player.detach, sandbox), say)
        findings += leftovers(place, pods, Agent(node.endpoint, cluster=_CLUSTER))
        for sandbox in sandboxes:
            player.remove(sandbox)
        findings += _stop(node)
    findings += (f"namespace {namespace} is left" for namespace in place.namespaces())
    return findings


def _prepare(place: Place) -> None:
    place.make()
    make_sandbox(place.node_namespace)
    settings = {"agent-socket": place.agent_socket, "state-dir": place.attachment_records}
    with open(place.plugin_settings, "w") as file:
        json.dump(settings, file)


def _not_served(pods: Sequence[PodView]) -> Iterator[str]:
    if not pods:
        yield "the manager knows no pod"
    for pod in pods:
        if pod.state in (PodState.WAITING, PodState.REFUSED):
            yield f"pod {pod.namespace}/{pod.name} is {pod.state.value}: {pod.reason}: {pod.message}"


def _step(name: str, sandboxes: Sequence[Sandbox], act: Callable[[Sandbox], Iterator[str]], say: Say) -> list[str]:
    """Does one thing to every pod, however it ends for the others."""
    began = time.monotonic()
    findings = [
        f"pod {sandbox.pod.namespace}/{sandbox.pod.name}: {finding}"
        for sandbox in sandboxes
        for finding in act(sandbox)
    ]
    took = time.monotonic() - began
    say(f"{name}: {len(sandboxes)} pods in {took:.1f} s, " + (f"{len(findings)} findings" if findings else "all well"))
    return findings


def _attach(player: RuntimePlayer, sandbox: Sandbox) -> Iterator[str]:
    try:
        result = player.attach(sandbox)
    except CniRuntimeError as error:
        yield str(error)
        return
    links, routes = read_links(sandbox.namespace), read_routes(sandbox.namespace)
    interfaces = sandbox.pod.machine.interfaces if sandbox.pod.machine else ()
    yield from differences(interfaces, links, routes)
    yield from result_differences(result, links)


def _failure(operation: Callable[[Sandbox], None], sandbox: Sandbox) -> Iterator[str]:
    try:
        operation(sandbox)
    except CniRuntimeError as error:
        yield str(error)


def _stop(node: Node) -> Iterator[str]:
    status = node.stop()
    if status != 0:
        yield f"the node ended with status {status}"
