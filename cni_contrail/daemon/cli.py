"""Command line of `contrail-cnid`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cni_contrail.daemon.configuration import Configuration, load_configuration
from cni_contrail.daemon.errors import DaemonError
from cni_contrail.daemon.process import Daemon
from cni_contrail.errors import PluginError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the daemon; exit status 0 after SIGTERM, 2 if it cannot start as it is configured."""
    options = _parser().parse_args(arguments)
    try:
        configuration = load_configuration(options.config) if options.config else Configuration()
        Daemon(configuration, json_lines=options.log_format == "json").run()
    except (DaemonError, PluginError) as error:
        print(f"contrail-cnid: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="contrail-cnid", description="Serves CNI calls that the native shim hands over."
    )
    parser.add_argument("--config", metavar="FILE", help="YAML; without it the defaults and the node-wide file hold")
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="default: text")
    return parser
