"""What is to be installed: files of the image, and of the ConfigMap as it is now.

Files of the ConfigMap are written by people, and change while the installer runs. So they are validated: a node keeps
its old files if the new ones could not work.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from cni_contrail.daemon.configuration import load_daemon_configuration
from cni_contrail.daemon.errors import DaemonConfigurationError
from cni_contrail.errors import PluginError
from cni_contrail.installer.errors import InstallError
from cni_contrail.installer.paths import CONFLIST, LOOPBACK, PLUGIN, SETTINGS
from cni_contrail.node_file import NODE_FILE_VARIABLE, read_node_file
from cni_contrail.runtime.configuration import NetworkList, load_file
from cni_contrail.runtime.errors import NetworkConfigurationError
from cni_contrail.settings import Settings, read_section, settings_of

_DAEMON = "cnid.yaml"


class Source(NamedTuple):
    """Contents of the files; `network` is the network configuration list.

    It is None where another plugin provides the default network.
    """

    plugin: bytes
    loopback: bytes
    settings: bytes
    network: NetworkList | None


def read_source(configuration: str, plugins: str) -> Source:
    """Reads the files of the directories `configuration` and `plugins`. Raises InstallError."""
    _read_node_settings(configuration)
    return Source(
        plugin=_read(f"{plugins}/{PLUGIN}"),
        loopback=_read(f"{plugins}/{LOOPBACK}"),
        settings=_read(f"{configuration}/{SETTINGS}"),
        network=_network(f"{configuration}/{CONFLIST}"),
    )


def read_daemon_settings(configuration: str) -> Settings:
    """Returns the settings of the node's daemon, which reads the same files. Raises InstallError."""
    settings = dict(_read_node_settings(configuration))
    path = f"{configuration}/{_DAEMON}"
    if os.path.lexists(path):
        try:
            settings |= load_daemon_configuration(path).settings
        except DaemonConfigurationError as error:
            raise InstallError(str(error)) from error
    return settings_of(settings)


def _read_node_settings(configuration: str) -> Mapping[str, Any]:
    try:
        return read_node_file({NODE_FILE_VARIABLE: f"{configuration}/{SETTINGS}"}, read_section)
    except PluginError as error:
        raise InstallError(error.message) from error


def _network(path: str) -> NetworkList | None:
    if not os.path.lexists(path):
        return None
    try:
        network = load_file(path)
    except NetworkConfigurationError as error:
        raise InstallError(str(error)) from error
    if PLUGIN not in {each.type for each in network.plugins}:
        raise InstallError(f"{path}: no plugin has the type {PLUGIN}")
    return network


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InstallError(f"{path}: cannot read: {error.strerror}") from error
