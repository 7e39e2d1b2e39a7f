"""Network configuration of the upstream plugin, which is Contrail's own: found on a node, read, and compared with ours.

The upstream plugin has the name of ours. It reads the first file of the directory whose name ends in `contrail.conf` or
`tf-cni.conf`. Most of its keys are ours too. It ignores unknown keys, and upper and lower case of keys.
"""

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from cni_contrail.errors import PluginError
from cni_contrail.installer.errors import InstallError
from cni_contrail.installer.paths import PLUGIN
from cni_contrail.quoting import cut, quoted
from cni_contrail.runtime.configuration import NetworkList, PluginConfiguration, load_file
from cni_contrail.runtime.errors import NetworkConfigurationError
from cni_contrail.settings import Settings, read_section, settings_of

ENDINGS = ("contrail.conf", "tf-cni.conf")

_MOUNTED = "/var/lib/contrail/"  # in the daemon's container
# Another value would lose the pods of the upstream plugin, or connect new ones in another way. The defaults are ours.
_KEPT = (
    "network-name",
    "cluster-name",
    "vrouter-ip",
    "vrouter-port",
    "config-dir",
    "vif-type",
    "parent-interface",
    "mtu",
)
_MAY_DIFFER = ("poll-timeout", "poll-retries")
_WITHOUT_COUNTERPART = {
    "log-file": "the daemon logs to the log of its container",
    "log-level": "the upstream plugin ignores it",
    "meta-plugin": "not needed: the name of the network says how the plugin is called",
    "mode": "not needed",
    "network-name": "the upstream plugin ignores it: name counts",
}
_KNOWN_AT_TOP = ("cniVersion", "name", "type", "contrail", "cniName")


class UpstreamConfiguration(NamedTuple):
    """The file at `path` on the node: `values` by our keys, defaults included; texts on keys without counterpart.

    `unread` are later files with such names, which the upstream plugin does not read.
    """

    path: str
    values: Mapping[str, Any]
    notes: tuple[str, ...]
    unread: tuple[str, ...] = ()


def find_upstream(root: str, directory: str) -> UpstreamConfiguration | None:
    """Returns the first configuration of the upstream plugin in `directory` of the node at `root`, None without any.

    Raises InstallError if a file that may be one, and no valid one is before it, is invalid.
    """
    try:
        names = sorted(name for name in os.listdir(root + directory) if name.endswith(ENDINGS))
    except OSError:  # reported by who writes there
        return None
    paths = [f"{directory}/{name}" for name in names if not os.path.isdir(f"{root}{directory}/{name}")]
    for index, path in enumerate(paths):
        if upstream := _read(root, path):
            unread = (each for each in paths[index + 1 :] if not _is_of_another_plugin(root, each))
            return upstream._replace(unread=tuple(unread))
    return None


def check_take_over(upstream: UpstreamConfiguration, network: NetworkList | None, ours: Settings) -> None:
    """Raises InstallError, which names every setting that differs, unless ours have the same effect for pods."""
    if network is None:
        raise InstallError(f"{upstream.path}: not taken over: the configuration has no network configuration list")
    theirs = upstream.values
    compared = [key for key in _KEPT if key != "parent-interface" or theirs["vif-type"] == "macvlan"]
    pairs = [(key, theirs[key], getattr(ours, key.replace("-", "_"))) for key in compared]
    pairs += [("agent-socket", "", ours.agent_socket), ("name", theirs["network-name"], network.name)]
    differences = [f"{key} is {quoted(old)} there and {quoted(new)} here" for key, old, new in pairs if old != new]
    if differences:
        raise InstallError(f"{upstream.path}: not taken over: {'; '.join(differences)}")


def daemon_settings(upstream: UpstreamConfiguration) -> str:
    """Returns lines for the daemon's configuration; comments name what has no counterpart."""
    lines = [f"# {upstream.path}", *(f"{key}: {json.dumps(value)}" for key, value in upstream.values.items())]
    return "\n".join([*lines, 'agent-socket: ""', *(f"# no counterpart: {note}" for note in upstream.notes)])


def _read(root: str, path: str) -> UpstreamConfiguration | None:
    try:
        network = load_file(root + path)
    except NetworkConfigurationError as error:
        raise InstallError(str(error).removeprefix(root)) from error
    plugin = network.plugins[0]
    return _upstream(path, network.name, plugin) if plugin.type == PLUGIN else None


def _is_of_another_plugin(root: str, path: str) -> bool:
    try:
        return load_file(root + path).plugins[0].type != PLUGIN
    except NetworkConfigurationError:
        return False


def _upstream(path: str, name: str, plugin: PluginConfiguration) -> UpstreamConfiguration:
    section = plugin.document.get("contrail", {})
    if not isinstance(section, Mapping):
        raise InstallError(f"{path}: contrail must be an object, not {quoted(section)}")
    section = {key.lower(): value for key, value in section.items() if value is not None}
    if section.get("mode") == "mesos":
        raise InstallError(f"{path}: mode must be k8s, not mesos")
    taken = {key: section[key] for key in (*_KEPT, *_MAY_DIFFER) if key in section}
    try:
        given = read_section(taken | {"network-name": name}, path)
    except PluginError as error:
        raise InstallError(error.message) from error
    settings = settings_of(given)
    values = {key: getattr(settings, key.replace("-", "_")) for key in _KEPT}
    values |= {key: given[key] for key in _MAY_DIFFER if key in given}
    return UpstreamConfiguration(path, values, tuple(_notes(plugin.document, section, values["config-dir"])))


def _notes(document: Mapping[str, Any], section: Mapping[str, Any], config_dir: str) -> list[str]:
    top = [key for key in document if key not in _KNOWN_AT_TOP]
    notes = [f"{cut(key)} {quoted(document[key])}: the upstream plugin ignores it" for key in top]
    for key, value in section.items():
        if key in _WITHOUT_COUNTERPART or key not in (*_KEPT, *_MAY_DIFFER):
            reason = _WITHOUT_COUNTERPART.get(key, "unknown")
            notes.append(f"{cut(key)} {quoted(value)}: {reason}")
    if not f"{config_dir}/".startswith(_MOUNTED):
        notes.append(f"config-dir {quoted(config_dir)}: also needs a mount in the container cnid")
    return notes
