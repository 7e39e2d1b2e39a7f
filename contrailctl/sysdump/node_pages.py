"""`contrailctl node-pages`: what agent and daemon of this node serve about themselves, for a dump."""

import msgspec

from contrailctl.endpoint import Endpoint
from contrailctl.errors import ContrailctlError
from contrailctl.output import Output

_AGENT = ("/healthz", "/readyz", "/datapath/report", "/metrics")
_DAEMON = ("/healthz", "/readyz", "/adds", "/metrics")


class NodePages(msgspec.Struct, frozen=True):
    """Pages by the names of their files, and what could not be read."""

    pages: dict[str, str]
    problems: tuple[str, ...]


def node_pages(agent: Endpoint, daemon: Endpoint) -> Output:
    """Returns the pages of both."""
    pages, problems = dict[str, str](), list[str]()
    for name, endpoint, paths in (("agent", agent, _AGENT), ("cnid", daemon, _DAEMON)):
        for path in paths:
            try:
                _, body = endpoint.request(path)  # also /readyz of a process that is not ready
            except ContrailctlError as error:
                problems.append(f"{name}{path}: {error}")
                break  # the others would take as long to fail
            pages[f"{name}{path.replace('/', '-')}"] = body.decode(errors="replace")
    found = NodePages(pages, tuple(problems))
    return Output("\n".join([*pages, *problems]), found)
