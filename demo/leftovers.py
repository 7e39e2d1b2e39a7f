"""Searches for what DEL failed to remove: links in the kernel, files, and ports of the agent."""

import os
from collections.abc import Iterator, Sequence

from cni_contrail.datapath.uplink_rules import NODE_PREFIX
from contrailctl.agent import AgentApi
from demo.kernel_state import read_links
from demo.resources import DemoResources
from manager.api.types import PodView


def leftovers(resources: DemoResources, pods: Sequence[PodView], agent: AgentApi) -> Iterator[str]:
    """Yields a sentence for each pod link, file and port left after DEL. Call it before the sandboxes are removed."""
    for namespace in resources.namespaces():
        for link in read_links(namespace):
            # A network has its uplink as long as pods request it, and these are deleted with the manifests only.
            if link.name.startswith(NODE_PREFIX):
                continue
            yield f"link {link.name} in namespace {namespace}: not removed"
    for directory in (resources.attachment_records, os.path.join(resources.result_cache, "results")):
        for path in _files(directory):
            yield f"file {path}: not removed"
    for pod in pods:
        if pod.machine and (ports := agent.plugged(pod.machine)):
            yield f"pod {pod.namespace}/{pod.name}: {len(ports)} ports still plugged in the agent"


def _files(directory: str) -> Iterator[str]:
    for parent, _, names in os.walk(directory):
        yield from (os.path.join(parent, name) for name in names)
