"""Container runtime of a node: calls the plugin once for all interfaces of a pod."""

import json
from pathlib import Path

from tests.support.cluster_processes import BINARIES
from tests.support.netns import Netns
from tests.support.plugin import Outcome, Plugin, PodSandbox


class Runtime:
    """Calls the plugin's executable in the node's network namespace; the node's agent listens on `agent_socket`."""

    def __init__(self, node: Netns, folder: Path, agent_socket: Path) -> None:
        self.plugin = Plugin(node, folder, str(agent_socket))

    def add(self, pod: PodSandbox) -> Outcome:
        return self._call("ADD", pod)

    def delete(self, pod: PodSandbox) -> Outcome:
        return self._call("DEL", pod)

    def _call(self, command: str, pod: PodSandbox) -> Outcome:
        environment = self.plugin.environment(command, pod, CONTRAIL_CNI_CONFIG=str(self.plugin.node_file))
        config = json.dumps(self.plugin.config(settings={"poll-timeout": 1, "poll-retries": 10}))
        ended = self.plugin.node.run(str(BINARIES / "contrail-k8s-cni"), input=config, env=environment)
        return Outcome(ended.returncode, ended.stdout, ended.stderr)
