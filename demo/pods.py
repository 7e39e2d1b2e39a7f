"""Runs each step of the demo for all pods; a failure of one pod does not stop the others."""

import time
from collections.abc import Callable, Iterator

from cni_contrail.runtime.errors import CniRuntimeError
from contrailctl.agent import AgentApi
from contrailctl.manager import ManagerApi
from demo.comparison import differences, result_differences
from demo.container_runtime import ContainerRuntime, PodSandbox
from demo.kernel_state import read_links, read_routes
from demo.leftovers import leftovers
from demo.matrix import asked, cells, matrix_table, wrong
from demo.node import DemoNode
from demo.output import sandbox_table
from demo.resources import DemoResources
from manager.api.types import PodState

Show = Callable[[str], None]

_CLUSTER = "k8s"


class DemoPods:
    """The pods that the manager serves, each with a sandbox. A finding is a sentence on a failed check."""

    def __init__(self, node: DemoNode, runtime: ContainerRuntime, show: Show) -> None:
        self._agent = AgentApi(node.endpoint, cluster=_CLUSTER)
        self._runtime = runtime
        self._show = show
        self._pods = ManagerApi(node.endpoint).pods()
        self.sandboxes = [runtime.create(pod) for pod in self._pods if pod.state is PodState.READY]

    def bring_up(self) -> list[str]:
        """Attaches all pods, prints the kernel state, compares it with the manager, and runs CHECK."""
        findings = list(self._unserved())
        # A runtime continues with other pods if one fails, and so does each step here.
        findings += self._step("ADD", self._attempt(self._runtime.attach))
        self._show(f"\n{sandbox_table(self.sandboxes)}\n")
        findings += self._step("kernel against manager", self._compare)
        findings += self._step("CHECK", self._attempt(self._runtime.check))
        findings += self._ping()
        return findings

    def tear_down(self, resources: DemoResources) -> list[str]:
        """Detaches all pods, searches for leftovers, and removes the sandboxes."""
        findings = self._step("DEL", self._attempt(self._runtime.detach))
        findings += leftovers(resources, self._pods, self._agent)
        for sandbox in self.sandboxes:
            self._runtime.remove(sandbox)
        return findings

    def _ping(self) -> list[str]:
        """Prints the matrix of echo requests among the pods; returns what is wrong with it."""
        answers = asked(list(cells(self.sandboxes)))
        self._show(f"\n{matrix_table(answers)}\n")
        return list(wrong(answers))

    def _unserved(self) -> Iterator[str]:
        if not self._pods:
            yield "manager: no pods found"
        for pod in self._pods:
            if pod.state in (PodState.WAITING, PodState.REFUSED):
                yield f"pod {pod.namespace}/{pod.name}: {pod.state.value}: {pod.reason}: {pod.message}"

    def _step(self, name: str, run: Callable[[PodSandbox], Iterator[str]]) -> list[str]:
        began = time.monotonic()
        findings = [
            f"pod {sandbox.pod.namespace}/{sandbox.pod.name}: {finding}"
            for sandbox in self.sandboxes
            for finding in run(sandbox)
        ]
        outcome = f"{len(findings)} failures" if findings else "ok"
        self._show(f"{name}: {len(self.sandboxes)} pods in {time.monotonic() - began:.1f} s, {outcome}")
        return findings

    def _attempt(self, operation: Callable[[PodSandbox], None]) -> Callable[[PodSandbox], Iterator[str]]:
        def run(sandbox: PodSandbox) -> Iterator[str]:
            try:
                operation(sandbox)
            except CniRuntimeError as error:
                yield str(error)

        return run

    def _compare(self, sandbox: PodSandbox) -> Iterator[str]:
        links = read_links(sandbox.namespace)
        interfaces = sandbox.pod.machine.interfaces if sandbox.pod.machine else ()
        yield from differences(interfaces, links, read_routes(sandbox.namespace))
        yield from result_differences(self._runtime.result(sandbox), links)
