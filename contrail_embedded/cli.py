"""`contrail-manager`: the manager alone, or with store and agent in one process."""

import argparse
import importlib.metadata
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

from agent_api.configuration import check_cidr
from agent_api.datapath.desired_state import DatapathOptions, Masquerade
from agent_api.datapath.kind import Datapath
from agent_api.datapath.refusals import FABRIC_SUBNETS
from cni_contrail.link.host_side import DIRECTORY
from contrail_embedded.node import run_node
from contrail_embedded.settings import DEFAULT_DATAPATH, node_settings
from contrail_service.errors import ConfigurationError
from contrail_service.logs import set_up_logs
from contrail_service.process import EXIT_WRONG_USE, run_service
from manager.configuration import KubernetesSourceSettings, ManagerConfiguration, load_manager_configuration
from manager.kubernetes.process import run_in_cluster

_EPILOG = """
With --embedded: manager, store (an SQLite file, or a Contrail API server) and agent in one process, for a single host
without a cluster. --manifests, --data-dir and --listen override the configuration file.
"""


_ONLY_EMBEDDED = (
    "manifests", "data_dir", "listen", "tcp_writes", "datapath", "netns_dir", "no_masquerade", "masquerade_excluded",
    "fabric_subnets",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status.

    0: stopped by a signal, 1: died or needs a restart, 2: wrong use or configuration.
    """
    options = _parser().parse_args(arguments)
    set_up_logs(json_lines=options.log_format == "json", level=options.log_level)
    try:
        service = _service(options)
    except ConfigurationError as error:
        print(f"contrail-manager: {error}", file=sys.stderr)
        return EXIT_WRONG_USE
    return run_service(service, program="contrail-manager")


def _service(options: argparse.Namespace) -> Callable[[], Coroutine[None, None, None]]:
    if not options.embedded:
        _check_standalone(options)
    configuration = load_manager_configuration(options.config)
    # A manifest source implies one machine: with --embedded there is an agent too, else the manager runs alone.
    if not isinstance(configuration.source, KubernetesSourceSettings):
        return _node(configuration, options)
    if options.embedded:
        raise ConfigurationError(f"{options.config}: source.kind: kubernetes cannot be combined with --embedded")
    return partial(run_in_cluster, configuration, configuration.source)


def _check_standalone(options: argparse.Namespace) -> None:
    if options.config is None:
        raise ConfigurationError("--config FILE or --embedded is required")
    given = [name for name in _ONLY_EMBEDDED if getattr(options, name) not in (None, False)]
    if given:
        raise ConfigurationError(f"--{given[0].replace('_', '-')} requires --embedded")


def _node(
    configuration: ManagerConfiguration, options: argparse.Namespace
) -> Callable[[], Coroutine[None, None, None]]:
    settings = node_settings(
        configuration,
        embedded=options.embedded,
        manifests=options.manifests,
        data_dir=options.data_dir,
        listen=options.listen,
        tcp_writes=options.tcp_writes,
        datapath=Datapath(options.datapath or DEFAULT_DATAPATH),
        netns_dir=options.netns_dir or DIRECTORY,
        options=_datapath_options(options),
    )
    return partial(run_node, settings)


def _datapath_options(options: argparse.Namespace) -> DatapathOptions:
    excluded = _cidrs(options.masquerade_excluded, key="--masquerade-excluded", default=())
    return DatapathOptions(
        masquerade=None if options.no_masquerade else Masquerade(excluded),
        fabric_subnets=_cidrs(options.fabric_subnets, key="--fabric-subnets", default=FABRIC_SUBNETS),
    )


def _cidrs(text: str | None, *, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    if text is None:
        return default
    cidrs = tuple(each.strip() for each in text.split(",") if each.strip())
    for cidr in cidrs:
        check_cidr(cidr, key=key)
    return cidrs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="contrail-manager", description=__doc__, epilog=_EPILOG)
    parser.add_argument("--config", metavar="FILE", help="configuration file (YAML)")
    parser.add_argument("--embedded", action="store_true", help="run manager, store and agent in this process")
    parser.add_argument("--manifests", metavar="DIR", help="directory of pod and network manifests")
    parser.add_argument("--data-dir", metavar="DIR", help="directory of the store, the ports and the agent's socket")
    parser.add_argument("--listen", metavar="HOST:PORT", help="address of the manager's and the agent's API")
    parser.add_argument("--tcp-writes", action="store_true", help="accept writes of root at --listen too")
    parser.add_argument(
        "--datapath",
        choices=[each.value for each in Datapath],
        help=f"with --embedded: what connects the interfaces; default: {DEFAULT_DATAPATH}",
    )
    parser.add_argument(
        "--netns-dir", metavar="DIR", help=f"with --datapath linux: namespaces of networks; default: {DIRECTORY}"
    )
    parser.add_argument(
        "--no-masquerade",
        action="store_true",
        help="with --datapath linux: packets of index 0 to the outside keep the address of their pod",
    )
    parser.add_argument(
        "--masquerade-excluded",
        metavar="CIDRS",
        help="with --datapath linux: comma-separated CIDRs that are not outside, beside the pods' own subnets",
    )
    parser.add_argument(
        "--fabric-subnets",
        metavar="CIDRS",
        help="with --datapath linux: comma-separated CIDRs in which networks of tenants may get routes on this node; "
        f"default: {','.join(FABRIC_SUBNETS)}",
    )
    parser.add_argument("--log-format", choices=["text", "json"], default="text", help="format of the log lines")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    version = importlib.metadata.version("contrail-multinet")
    parser.add_argument("--version", action="version", version=f"contrail-multinet {version}")
    return parser
