"""Conflict: another network configuration sorts before ours, so a runtime uses that one for all pods.

Runtimes take the first file of their directory by name. That of Multus may come first: it calls the first one after it.
"""

import os

from cni_contrail.quoting import cut
from cni_contrail.runtime.configuration import NetworkList, load_file
from cni_contrail.runtime.errors import NetworkConfigurationError

_ENDINGS = (".conf", ".conflist", ".json")
_META_PLUGIN = "multus"  # also `multus-shim`


def find_conflict(root: str, directory: str, own: str) -> str:
    """Returns which configuration of `directory`, on the node at `root`, takes the place of the file `own`, and how.

    Empty if none does.
    """
    try:
        names = sorted(name for name in os.listdir(root + directory) if name.endswith(_ENDINGS) and name < own)
    except OSError:  # reported by who writes there
        return ""
    paths = [f"{directory}/{name}" for name in names if not os.path.isdir(f"{root}{directory}/{name}")]
    return next(filter(None, (_conflict(root, path, own) for path in paths)), "")


def _conflict(root: str, path: str, own: str) -> str:
    try:
        network = load_file(root + path)
    except NetworkConfigurationError as error:
        if not os.path.lexists(root + path):  # another plugin is just replacing it
            return ""
        reason = str(error).removeprefix(f"{root}{path}: ")
        return f"{path}: sorts before {own}, so runtimes use it for new pods; it is invalid: {cut(reason)}"
    if _is_of_multus(network):
        return ""
    return f"{path}: sorts before {own}, so runtimes use its network {network.name} for new pods"


def _is_of_multus(network: NetworkList) -> bool:
    return all(plugin.type.startswith(_META_PLUGIN) for plugin in network.plugins)
