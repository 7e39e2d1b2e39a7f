"""Command line of `contrail-cnid`."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
from collections.abc import Sequence

from cni_contrail.daemon.configuration import DaemonConfiguration, load_daemon_configuration
from cni_contrail.daemon.errors import DaemonError
from cni_contrail.daemon.process import Daemon
from cni_contrail.errors import PluginError
from cni_contrail.node_file import NODE_FILE


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the daemon; returns 0 after SIGTERM, 2 if it cannot start with its configuration."""
    options = _parser().parse_args(arguments)
    if os.geteuid() != 0:
        print("contrail-cnid: permission denied: must run as root", file=sys.stderr)
        return 2
    try:
        configuration = load_daemon_configuration(options.config) if options.config else DaemonConfiguration()
        Daemon(configuration, json_lines=options.log_format == "json").run()
    except (DaemonError, PluginError) as error:
        print(f"contrail-cnid: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="contrail-cnid",
        description="Serves the CNI calls that the native shim forwards. Runs as root, until SIGTERM.",
        epilog=f"FILE has the keys of {NODE_FILE}, which is read as well, and `socket` and `metrics-listen`.",
    )
    parser.add_argument("--config", metavar="FILE", help=f"configuration file, YAML; default: {NODE_FILE} only")
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="default: text")
    version = importlib.metadata.version("contrail-multinet")
    parser.add_argument("--version", action="version", version=f"contrail-multinet {version}")
    return parser
