"""Settings of the process, merged from its command line and its configuration file."""

import os

import msgspec

from agent_api.datapath.desired_state import DEFAULT_OPTIONS, DatapathOptions
from agent_api.datapath.kind import Datapath
from cni_contrail.link.host_side import DIRECTORY
from contrail_service.errors import ConfigurationError
from contrail_service.listen import ListenAddress, parse_listen, parse_optional_listen
from manager.configuration import (
    ContrailStoreSettings,
    EmbeddedStoreSettings,
    ManagerConfiguration,
    ManifestSourceSettings,
)

DEFAULT_DATAPATH = Datapath.LINUX
"""Unlike in the configuration of a separate agent: no vrouter is on a single machine."""


class AgentSettings(msgspec.Struct, frozen=True):
    """Port directory of the agent, the Unix socket for the plugin, whether TCP accepts writes too, and the datapath.

    `netns_dir` is where the datapath has the namespaces of networks.
    """

    ports_dir: str
    socket: str
    tcp_writes: bool = False
    datapath: Datapath = DEFAULT_DATAPATH
    netns_dir: str = DIRECTORY
    options: DatapathOptions = DEFAULT_OPTIONS


class NodeSettings(msgspec.Struct, frozen=True):
    """Settings of `node`; `agent` is None if the manager runs alone. `store` is the path of the SQLite file."""

    configuration: ManagerConfiguration
    manifests: str
    store: str
    listen: ListenAddress
    metrics_listen: ListenAddress | None
    agent: AgentSettings | None


def node_settings(
    configuration: ManagerConfiguration,
    *,
    embedded: bool,
    manifests: str | None = None,
    data_dir: str | None = None,
    listen: str | None = None,
    tcp_writes: bool = False,
    datapath: Datapath = DEFAULT_DATAPATH,
    netns_dir: str = DIRECTORY,
    options: DatapathOptions = DEFAULT_OPTIONS,
) -> NodeSettings:
    """Returns the settings; command-line values override the configuration. Raises ConfigurationError."""
    if embedded and data_dir is None:
        raise ConfigurationError("--data-dir is required with --embedded")
    data = None if data_dir is None else os.path.abspath(data_dir)
    return NodeSettings(
        configuration=configuration,
        manifests=_manifests(configuration, manifests),
        store=_store(configuration, data),
        listen=parse_listen(listen or configuration.listen, key="--listen" if listen else "listen"),
        metrics_listen=parse_optional_listen(configuration.metrics_listen, key="metrics-listen"),
        agent=None
        if data is None
        else AgentSettings(
            ports_dir=os.path.join(data, "ports"),
            socket=os.path.join(data, "agent.sock"),
            tcp_writes=tcp_writes,
            datapath=datapath,
            netns_dir=netns_dir,
            options=options,
        ),
    )


def _manifests(configuration: ManagerConfiguration, given: str | None) -> str:
    source = configuration.source
    path = given or (source.path if isinstance(source, ManifestSourceSettings) else None)
    if path is None:
        raise ConfigurationError("--manifests with --embedded, or source.path in the configuration, is required")
    return path


def _store(configuration: ManagerConfiguration, data_dir: str | None) -> str:
    """Returns the path of the file, which a Contrail API server as store needs, too."""
    store = configuration.store
    if data_dir is None and isinstance(store, ContrailStoreSettings):
        raise ConfigurationError("store.kind vnc with manifests requires --embedded with --data-dir")
    configured = store.path if isinstance(store, EmbeddedStoreSettings) else None
    if data_dir is not None:  # --data-dir overrides store.path, so that all state is in one directory
        return os.path.join(data_dir, "store.sqlite")
    if configured is None:
        raise ConfigurationError("store.path in the configuration, or --data-dir with --embedded, is required")
    return configured
