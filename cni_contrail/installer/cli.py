"""Command line of `contrail-installer`."""

import argparse
import importlib.metadata
import os
import signal
import sys
from collections.abc import Sequence

from cni_contrail.errors import PluginError
from cni_contrail.installer.errors import InstallError
from cni_contrail.installer.paths import Paths
from cni_contrail.installer.report import INSTALL, UNINSTALL, read_report

_STOP = (signal.SIGTERM, signal.SIGINT)
_ASKED = {"is-installed": INSTALL, "is-uninstalled": UNINSTALL}
_UPSTREAM_SETTINGS = "upstream-settings"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs an action; returns 0 if it was stopped by a signal, or the answer is yes or printed, else 1."""
    options = _parser().parse_args(arguments)
    try:
        if options.action in _ASKED:
            return _answer(_paths(options), _ASKED[options.action])
        if options.action == _UPSTREAM_SETTINGS:
            return _print_upstream_settings(options.host.rstrip("/"))
        _run(options)
    except (InstallError, PluginError, OSError) as error:
        print(f"contrail-installer: {error}", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)  # first: the first process of a container ignores others
    # Not for the questions, which probes ask every 10 s.
    from cni_contrail.installer.keeper import Keeper
    from cni_contrail.installer.uninstaller import Uninstaller
    from cni_contrail.log import Log

    log = Log(json_lines=options.log_format == "json")
    paths = _paths(options)
    installs = options.action == INSTALL
    work = Keeper(paths, log, take_over=options.take_over) if installs else Uninstaller(paths, log)
    work.run(lambda seconds: signal.sigtimedwait(_STOP, seconds) is not None)


def _paths(options: argparse.Namespace) -> Paths:
    return Paths(
        options.host.rstrip("/"),
        options.configuration,
        options.plugins,
        options.run_dir,
        options.state_dir or os.path.join(options.run_dir, "cni"),
    )


def _print_upstream_settings(root: str) -> int:
    from cni_contrail.installer.installation import CONFIGURATIONS
    from cni_contrail.installer.upstream import daemon_settings, find_upstream

    upstream = find_upstream(root, CONFIGURATIONS)
    if upstream is None:
        raise InstallError(f"{CONFIGURATIONS}: no configuration of Contrail's own plugin")
    print(daemon_settings(upstream))
    return 0


def _answer(paths: Paths, action: str) -> int:
    """Answers a question; the report of an installer of other files, such as the previous release's, is no answer."""
    report = read_report(paths.run_dir)
    if report is None or report.action != action:
        print(f"contrail-installer {action}: has not begun", file=sys.stderr)
        return 1
    if action == INSTALL and report.source != paths.digest():
        print(f"contrail-installer {action}: of these files has not begun, only of others", file=sys.stderr)
        return 1
    for text in report.texts:
        print(text, file=sys.stderr)
    return 0 if report.done else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="contrail-installer",
        description="Installs the CNI plugin on a node and keeps it there, or removes it.",
    )
    parser.add_argument(
        "action",
        choices=(INSTALL, UNINSTALL, *_ASKED, _UPSTREAM_SETTINGS),
        help="install, and put back what is removed or edited; or wait for the last pod and uninstall: both until"
        " SIGTERM. Two others ask the process with which action they share --run-dir, and for is-installed the files to"
        " install, whether it is done. The last one"
        " prints the settings of Contrail's own plugin as keys of the daemon",
    )
    parser.add_argument(
        "--take-over", action="store_true", help="also install where Contrail's own plugin is, with equal settings"
    )
    parser.add_argument("--host", metavar="DIR", default="/host", help="where directories of the node are mounted")
    parser.add_argument(
        "--configuration", metavar="DIR", default="/etc/contrail-node", help="cni.json and 10-contrail.conflist"
    )
    parser.add_argument(
        "--plugins", metavar="DIR", default="/opt/contrail/cni", help="the plugins contrail-k8s-cni and loopback"
    )
    parser.add_argument("--run-dir", metavar="DIR", default="/run/contrail", help="lock and report of the installer")
    parser.add_argument("--state-dir", metavar="DIR", help="state-dir of the daemon; default: cni in --run-dir")
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="default: text")
    version = importlib.metadata.version("contrail-multinet")
    parser.add_argument("--version", action="version", version=f"contrail-multinet {version}")
    return parser
