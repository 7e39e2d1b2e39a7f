"""`contrailctl datapath purge`: removes the datapath from the node that it runs on."""

import argparse
import os
from collections.abc import Iterator, Mapping

import msgspec

from cni_contrail.datapath.namespaces import Namespaces, name_of
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.purge import PurgeOutcome, purge
from contrailctl.errors import NotPermittedError, UsageError
from contrailctl.output import Output


class PurgedNetwork(msgspec.Struct, frozen=True):
    """A network that was removed or kept, and its ports; index 0, which is routed, has `vni` 0."""

    vni: int
    ports: tuple[str, ...]


class PurgeProblem(msgspec.Struct, frozen=True):
    """Why a network could not be removed."""

    vni: int
    problem: str


def purge_datapath(arguments: argparse.Namespace) -> Output:
    """Removes namespaces of networks, and table, routes and settings of routed ports; those with ports with --force.

    The exit status is 1 if something is left. Raises NotPermittedError, UsageError.
    """
    if os.geteuid() != 0:
        raise NotPermittedError("datapath purge: must run as root, on the node")
    if os.path.exists(arguments.netns_dir) and not os.path.isdir(arguments.netns_dir):
        raise UsageError(f"--netns-dir: {arguments.netns_dir} is not a directory")
    outcome = purge(Namespaces(arguments.netns_dir), with_ports=arguments.force)
    document = {
        "removed": _networks(outcome.removed),
        "kept": _networks(outcome.kept),
        "problems": [PurgeProblem(vni, problem) for vni, problem in outcome.problems.items()],
    }
    text = "\n".join(_lines(outcome)) or "nothing to remove"
    return Output(text, document, status=1 if outcome.kept or outcome.problems else 0)


def _networks(ports: Mapping[int, tuple[str, ...]]) -> list[PurgedNetwork]:
    return [PurgedNetwork(vni, links) for vni, links in ports.items()]


def _lines(outcome: PurgeOutcome) -> Iterator[str]:
    for vni, ports in outcome.removed.items():
        yield f"removed {_named(vni)}{_with(ports)}"
    for vni, ports in outcome.kept.items():
        yield f"kept {_named(vni)}{_with(ports)}: --force removes it, and traffic of these ports ends"
    for vni, problem in outcome.problems.items():
        yield f"failed to remove {_named(vni)}: {problem}"


def _named(vni: int) -> str:
    return "filter, routes and settings of index 0" if vni == INDEX_0 else f"network namespace {name_of(vni)}"


def _with(ports: tuple[str, ...]) -> str:
    return f" with {len(ports)} port{'s' if len(ports) > 1 else ''} ({', '.join(ports)})" if ports else ""
