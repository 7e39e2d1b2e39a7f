"""`contrailctl cni`: a container runtime's calls, made by hand on a network namespace.

Container IDs and the cache of results are those of cnitool, so either can take up what the other began.
"""

import argparse
import dataclasses
import hashlib
import os

import msgspec

from cni_contrail.runtime.attachment import Attachment, parse_args
from cni_contrail.runtime.chain import OPERATION_TIMEOUT, Runtime
from cni_contrail.runtime.configuration import NetworkList, load_file
from cni_contrail.runtime.directory import find_network
from cni_contrail.runtime.errors import ResultError
from cni_contrail.runtime.sandbox import NETNS_DIR
from contrailctl.answer import Answer
from contrailctl.errors import UsageError

_FILE_ENDINGS = (".conflist", ".conf", ".json")


def cni_add(arguments: argparse.Namespace) -> Answer:
    """Attaches the namespace and answers the result."""
    result = _runtime(arguments).add(_network(arguments), _attachment(arguments))
    return Answer(msgspec.json.format(msgspec.json.encode(result), indent=2).decode(), result)


def cni_check(arguments: argparse.Namespace) -> Answer:
    """Answers nothing if every plugin finds the attachment in order."""
    runtime, network = _runtime(arguments), _network(arguments)
    runtime.check(network, _as_added(runtime, network, _attachment(arguments)))
    return Answer("", {})


def cni_del(arguments: argparse.Namespace) -> Answer:
    """Detaches the namespace; answers nothing."""
    runtime, network = _runtime(arguments), _network(arguments)
    runtime.delete(network, _as_added(runtime, network, _attachment(arguments)))
    return Answer("", {})


def cni_later(arguments: argparse.Namespace) -> Answer:
    """Refuses what is not there yet."""
    raise UsageError(f"cni {arguments.operation} is not supported yet")


def _runtime(arguments: argparse.Namespace) -> Runtime:
    directories = [directory for directory in arguments.bin_dir.split(os.pathsep) if directory]
    return Runtime(directories, cache_dir=arguments.cache_dir, timeout=arguments.timeout or OPERATION_TIMEOUT)


def _network(arguments: argparse.Namespace) -> NetworkList:
    """A file if it looks like one, else a name in the configuration directory."""
    named: str = arguments.network
    if "/" in named or named.endswith(_FILE_ENDINGS):
        return load_file(named)
    return find_network(arguments.conf_dir, named)


def _attachment(arguments: argparse.Namespace) -> Attachment:
    netns: str = arguments.netns
    path = os.path.abspath(netns) if "/" in netns else os.path.join(NETNS_DIR, netns)
    return Attachment(
        container_id=arguments.container_id or f"cnitool-{hashlib.sha512(path.encode()).hexdigest()[:20]}",
        netns=path,
        ifname=arguments.ifname,
        args=parse_args(arguments.args or ""),
        capability_args=_capability_args(arguments.capability_args or "{}"),
    )


def _capability_args(text: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except msgspec.DecodeError as error:
        raise UsageError(f"--capability-args {text!r}: must be a JSON object: {error}") from error


def _as_added(runtime: Runtime, network: NetworkList, attachment: Attachment) -> Attachment:
    """Takes the parameters of the ADD where the command line states none, since they must be the same."""
    try:
        entry = runtime.cached(network, attachment)
    except ResultError:
        return attachment  # CHECK tells it, DEL goes on without
    if entry is None:
        return attachment
    return dataclasses.replace(
        attachment,
        args=attachment.args or entry.args,
        capability_args=attachment.capability_args or entry.capability_args,
    )
