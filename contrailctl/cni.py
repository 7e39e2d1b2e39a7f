"""`contrailctl cni`: runs CNI operations on a network namespace, as a container runtime does.

Container IDs and the result cache are compatible with cnitool, so each can delete what the other added.
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
    """One attachment: `attachment` is `CONTAINER/IFNAME`; `gone` says that its network namespace no longer exists."""

    network: str
    attachment: str
    namespace: str
    gone: bool
    addresses: tuple[str, ...]

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Cells of the table."""
        namespace = f"{self.namespace} (gone)" if self.gone else self.namespace
        return self.network, self.attachment, namespace, ", ".join(self.addresses)


class NetworkReadiness(msgspec.Struct, frozen=True):
    """Whether a network's plugins are `ready`, None if STATUS is not supported; `code` is that of a failed plugin."""

    network: str
    version: str
    ready: bool | None = None
    code: int | None = None
    message: str = ""


def cni_add(arguments: argparse.Namespace) -> Output:
    """Runs ADD and returns the result."""
    result = _runtime(arguments).add(_network(arguments), _attachment(arguments))
    return Output(msgspec.json.format(msgspec.json.encode(result), indent=2).decode(), result)


def cni_check(arguments: argparse.Namespace) -> Output:
    """Runs CHECK; the output is empty if every plugin succeeds."""
    runtime, network = _runtime(arguments), _network(arguments)
    runtime.check(network, _as_added(runtime, network, _attachment(arguments)))
    return Output("", {})


def cni_del(arguments: argparse.Namespace) -> Output:
    """Runs DEL; the output is empty."""
    runtime, network = _runtime(arguments), _network(arguments)
    runtime.delete(network, _as_added(runtime, network, _attachment(arguments)))
    return Output("", {})


def cni_list(arguments: argparse.Namespace) -> Output:
    """Returns the cached attachments and marks those whose network namespace no longer exists."""
    runtime = Runtime([], cache_dir=arguments.cache_dir)
    views = [_view(cached) for cached in runtime.attachments(arguments.container_id)]
    rows = [view.row for view in views]
    return Output(format_table(("NETWORK", "ATTACHMENT", "NAMESPACE", "ADDRESSES"), rows), views)


def cni_gc(arguments: argparse.Namespace) -> Output:
    """Runs GC and returns the cached attachments that were detached."""
    network = _network(arguments)
    if network.disable_gc:
        return Output(f"network {network.name} disables garbage collection: nothing to do", [])
    detached = [str(key) for key in _runtime(arguments).garbage_collect(network, arguments.valid)]
    return Output("\n".join(f"detached {key}" for key in detached), detached)


def cni_status(arguments: argparse.Namespace) -> Output:
    """Returns whether ADD can succeed: every plugin exists, supports the list's version and reports ready.

    The exit status is 1, with the plugin's code and message, if one is not ready. STATUS exists since CNI 1.1.0.
    """
    runtime, network = _runtime(arguments), _network(arguments)
    runtime.check_versions(network)
    try:
        runtime.status(network)
    except PluginCallError as error:
        # Other errors (missing plugin, unsupported version) are failures of this command.
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
    """Returns the network from a file, or by its name in the configuration directory."""
    network: str = arguments.network
    if "/" in network or network.endswith(_FILE_ENDINGS):
        return load_file(network)
    return find_network(arguments.conf_dir, network)


def _attachment(arguments: argparse.Namespace) -> Attachment:
    netns: str = arguments.netns
    path = os.path.abspath(netns) if "/" in netns else os.path.join(NETNS_DIR, netns)
    # cnitool derives container IDs by the same formula.
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
        raise UsageError(f"--capability-args: {text!r} is not a JSON object: {error}") from error


def _as_added(runtime: Runtime, network: NetworkList, attachment: Attachment) -> Attachment:
    """Completes the attachment with the cached parameters of its ADD: CHECK and DEL must use the same."""
    try:
        entry = runtime.cached(network, attachment)
    except ResultError:
        return attachment  # CHECK reports it, DEL continues without
    if entry is None:
        return attachment
    return dataclasses.replace(
        attachment,
        args=attachment.args or entry.args,
        capability_args=attachment.capability_args or entry.capability_args,
    )


def _view(cached: CachedAttachment) -> AttachmentView:
    """Returns the view, without addresses if the cached result is invalid: the attachment is still listed."""
    try:
        # Cached results have the version of their network list.
        addresses = convert_result(cached.entry.result, versions.CURRENT).get("ips", ())
    except ResultError:
        addresses = ()
    attachment = cached.attachment
    ips = tuple(entry["address"] for entry in addresses)
    gone = attachment.netns != "" and not is_netns(attachment.netns)
    return AttachmentView(cached.network, str(attachment.key), attachment.netns, gone, ips)
