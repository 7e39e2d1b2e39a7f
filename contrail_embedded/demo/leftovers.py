"""Looks for what DEL should have taken away: in the kernel, in files, and in the agent."""

import os
from collections.abc import Iterator, Sequence

from contrail_embedded.demo.kernel import read_links
from contrail_embedded.demo.place import DemoDirectory
from contrailctl.agent import AgentQueries
from manager.api.types import PodView


def leftovers(place: DemoDirectory, pods: Sequence[PodView], agent: AgentQueries) -> Iterator[str]:
    """Says in one sentence each what is still there after DEL, while the sandboxes are."""
    for namespace in place.namespaces():
        for link in read_links(namespace):
            yield f"link {link.name} is left in namespace {namespace}"
    for directory in (place.attachment_records, os.path.join(place.result_cache, "results")):
        for path in _files(directory):
            yield f"file {path} is left"
    for pod in pods:
        if pod.machine and (ports := agent.plugged(pod.machine)):
            yield f"the agent still has {len(ports)} plugged ports of pod {pod.namespace}/{pod.name}"


def _files(directory: str) -> Iterator[str]:
    for parent, _, names in os.walk(directory):
        yield from (os.path.join(parent, name) for name in names)
