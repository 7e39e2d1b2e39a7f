"""`contrailctl cni`: a container runtime's calls, made by hand on a network namespace.

Container IDs and the cache of results are those of cnitool, so either can take up what the other began.
"""

import argparse
import dataclasses
import hashlib
import os

import msgspec

from cni_contrail.link.netns import is_netns
from cni_contrail.runtime import versions
from cni_contrail.runtime.attachment import Attachment, parse_args
from cni_contrail.runtime.cache import CachedAttachment
from cni_contrail.runtime.chain import OPERATION_TIMEOUT, Runtime
from cni_contrail.runtime.configuration import NetworkList, find_network, load_file
from cni_contrail.runtime.errors import PluginCallError, ResultError
from cni_contrail.runtime.results import convert_result
from cni_contrail.runtime.sandbox import NETNS_DIR
from contrailctl.errors import UsageError
from contrailctl.output import Output
from contrailctl.table import format_table

_FILE_ENDINGS = (".conflist", ".conf", ".json")


class AttachmentView(msgspec.Struct, frozen=True):
    """One attachment that a runtime made: `attachment` is `CONTAINER/IFNAME`; `gone`: its namespace is."""

    network: str
    attachment: str
    namespace: str
    gone: bool
    addresses: tuple[str, ...]

    @property
    def row(self) -> tuple[str, str, str, str]:
        """As people read it."""
        namespace = f"{self.namespace} (gone)" if self.gone else self.namespace
        return self.network, self.attachment, namespace, ", ".join(self.addresses)


class NetworkReadiness(msgspec.Struct, frozen=True):
    """Whether a network's plugins are `ready`, None where they cannot be asked; else the `code` of one that is not."""

    network: str
    version: str
    ready: bool | None = None
    code: int | None = None
    message: str = ""


def cni_add(arguments: argparse.Namespace) -> Output:
    """Attaches the namespace and answers the result."""
    result = _runtime(arguments).add(_network(arguments), _attachment(arguments))
    return Output(msgspec.json.format(msgspec.json.encode(result), indent=2).decode(), result)


def cni_check(arguments: argparse.Namespace) -> Output:
    """Answers nothing if every plugin finds the attachment in order."""
    runtime, network = _runtime(arguments), _network(arguments)
    runtime.check(network, _as_added(runtime, network, _attachment(arguments)))
    return Output("", {})


def cni_del(arguments: argparse.Namespace) -> Output:
    """Detaches the namespace; answers nothing."""
    runtime, network = _runtime(arguments), _network(arguments)
    runtime.delete(network, _as_added(runtime, network, _attachment(arguments)))
    return Output("", {})


def cni_list(arguments: argparse.Namespace) -> Output:
    """Answers the attachments that were added and not deleted since, and says of which the namespace is gone."""
    runtime = Runtime([], cache_dir=arguments.cache_dir)
    views = [_view(cached) for cached in runtime.attachments(arguments.container_id)]
    rows = [view.row for view in views]
    return Output(format_table(("NETWORK", "ATTACHMENT", "NAMESPACE", "ADDRESSES"), rows), views)


def cni_gc(arguments: argparse.Namespace) -> Output:
    """Detaches what is not valid, and answers what that was as far as it was known."""
    network = _network(arguments)
    if network.disable_gc:
        return Output(f"network {network.name} disables garbage collection: nothing was done", [])
    detached = [str(key) for key in _runtime(arguments).garbage_collect(network, arguments.valid)]
    return Output("\n".join(f"detached {key}" for key in detached), detached)


def cni_status(arguments: argparse.Namespace) -> Output:
    """Answers whether an ADD can be served: every plugin is there, speaks the list's version, and says it is ready.

    Exit status 1 with the plugin's code and message if one is not ready. Before CNI 1.1.0 none can be asked that.
    """
    runtime, network = _runtime(arguments), _network(arguments)
    runtime.check_versions(network)
    try:
        runtime.status(network)
    except PluginCallError as error:
        message = " ".join(str(error).split())
        not_ready = NetworkReadiness(network.name, network.version, ready=False, code=error.code, message=message)
        return Output(f"network {network.name} is not ready: {message}", not_ready, status=1)
    if versions.at_least(network.version, versions.STATUS_AND_GC_SINCE):
        return Output(f"network {network.name} is ready", NetworkReadiness(network.name, network.version, ready=True))
    unknown = f"its plugins support CNI {network.version}, which has no STATUS operation"
    readiness = NetworkReadiness(network.name, network.version, message=unknown)
    return Output(f"network {network.name}: {unknown}", readiness)


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


def _view(cached: CachedAttachment) -> AttachmentView:
    """A result that cannot be read shows no addresses: what is attached is to be seen nevertheless."""
    try:
        addresses = convert_result(cached.entry.result, versions.CURRENT).get("ips", ())
    except ResultError:
        addresses = ()
    attachment = cached.attachment
    shown = tuple(entry["address"] for entry in addresses)
    gone = attachment.netns != "" and not is_netns(attachment.netns)
    return AttachmentView(cached.network, str(attachment.key), attachment.netns, gone, shown)
