"""All pods of the node, step by step: each step is done for every pod, however it ends for the others."""

import time
from collections.abc import Callable, Iterator

from cni_contrail.runtime.errors import CniRuntimeError
from contrail_embedded.demo.comparison import differences, result_differences
from contrail_embedded.demo.kernel import read_links, read_routes
from contrail_embedded.demo.leftovers import leftovers
from contrail_embedded.demo.node import Node
from contrail_embedded.demo.place import DemoDirectory
from contrail_embedded.demo.runtime_player import RuntimePlayer, Sandbox
from contrail_embedded.demo.show import sandbox_table
from contrailctl.agent import AgentQueries
from contrailctl.manager import ManagerQueries
from manager.api.types import PodState

Say = Callable[[str], None]

_CLUSTER = "k8s"


class PodsOnNode:
    """The pods that the manager serves, each with a sandbox. Findings are sentences on what did not hold."""

    def __init__(self, node: Node, player: RuntimePlayer, say: Say) -> None:
        self._agent = AgentQueries(node.endpoint, cluster=_CLUSTER)
        self._player = player
        self._say = say
        self._pods = ManagerQueries(node.endpoint).pods()
        self.sandboxes = [player.make(pod) for pod in self._pods if pod.state is PodState.READY]

    def bring_up(self) -> list[str]:
        """Attaches all, shows what the kernel has, compares it with what the manager says, and has the plugin CHECK."""
        findings = list(self._not_served())
        findings += self._step("ADD", self._attempt(self._player.attach))
        self._say(f"\n{sandbox_table(self.sandboxes)}\n")
        findings += self._step("kernel against manager", self._compare)
        findings += self._step("CHECK", self._attempt(self._player.check))
        return findings

    def take_down(self, place: DemoDirectory) -> list[str]:
        """Detaches all, looks for what is left of them, and removes their namespaces."""
        findings = self._step("DEL", self._attempt(self._player.detach))
        findings += leftovers(place, self._pods, self._agent)
        for sandbox in self.sandboxes:
            self._player.remove(sandbox)
        return findings

    def _not_served(self) -> Iterator[str]:
        if not self._pods:
            yield "the manager knows no pod"
        for pod in self._pods:
            if pod.state in (PodState.WAITING, PodState.REFUSED):
                yield f"pod {pod.namespace}/{pod.name} is {pod.state.value}: {pod.reason}: {pod.message}"

    def _step(self, name: str, act: Callable[[Sandbox], Iterator[str]]) -> list[str]:
        began = time.monotonic()
        findings = [
            f"pod {sandbox.pod.namespace}/{sandbox.pod.name}: {finding}"
            for sandbox in self.sandboxes
            for finding in act(sandbox)
        ]
        outcome = f"{len(findings)} findings" if findings else "all well"
        self._say(f"{name}: {len(self.sandboxes)} pods in {time.monotonic() - began:.1f} s, {outcome}")
        return findings

    def _attempt(self, operation: Callable[[Sandbox], None]) -> Callable[[Sandbox], Iterator[str]]:
        def act(sandbox: Sandbox) -> Iterator[str]:
            try:
                operation(sandbox)
            except CniRuntimeError as error:
                yield str(error)

        return act

    def _compare(self, sandbox: Sandbox) -> Iterator[str]:
        links = read_links(sandbox.namespace)
        interfaces = sandbox.pod.machine.interfaces if sandbox.pod.machine else ()
        yield from differences(interfaces, links, read_routes(sandbox.namespace))
        yield from result_differences(self._player.result(sandbox), links)
