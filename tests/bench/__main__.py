"""Runs benchmarks and prints the results as tables or as one JSON document."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.agent_vm_cfg import main as measure_agent
from tests.bench.agent_watches import main as measure_watches
from tests.bench.attach import main as measure_attach
from tests.bench.contrail_store import main as measure_contrail
from tests.bench.datapath import main as measure_datapath
from tests.bench.kubernetes.events import main as measure_events
from tests.bench.kubernetes.latency import main as measure_latency
from tests.bench.kubernetes.nads import main as measure_nads
from tests.bench.kubernetes.reconcile import main as measure_reconcile
from tests.bench.manager_throughput import main as measure_manager
from tests.bench.network import PARTS
from tests.bench.network import main as measure_network
from tests.bench.web import main as measure_web

_KUBERNETES = {
    "kubernetes-latency": measure_latency,
    "kubernetes-nads": measure_nads,
    "kubernetes-reconcile": measure_reconcile,
    "kubernetes-events": measure_events,
}


def main() -> int:
    """Runs the selected benchmarks and returns the exit status."""
    options = _parse()
    report: dict[str, Any] = {"machine": {"cpus": os.cpu_count(), "kernel": platform.release()}}
    if options.only in (None, "attach", "datapath", "network") and os.geteuid() != 0:
        sys.exit("bench: permission denied: creating interfaces needs root")
    for name, measure in _benchmarks(options).items():
        if options.only in (None, name):
            report[name] = measure()
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _print_tables(report)
    return 0


def _benchmarks(options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    return {
        "attach": lambda: measure_attach(options.runs, pairs=options.pairs, against=options.against),
        "datapath": lambda: measure_datapath(options.runs, quick=options.quick),
        "network": lambda: measure_network(options.part, quick=options.quick),
        "manager": measure_manager,
        "agent": measure_agent,
        "watches": measure_watches,
        "web": partial(measure_web, quick=options.quick),
        "contrail": partial(measure_contrail, quick=options.quick),
        **{name: partial(measure, quick=options.quick) for name, measure in _KUBERNETES.items()},
    }


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    names = [
        "attach",
        "datapath",
        "network",
        "manager",
        "agent",
        "watches",
        "web",
        "contrail",
        *_KUBERNETES,
    ]
    parser.add_argument("--only", choices=names, help="one benchmark instead of all")
    parser.add_argument("--part", choices=list(PARTS), help="one part of `network` instead of all")
    parser.add_argument("--runs", type=int, default=50, help="calls of each kind (default 50)")
    parser.add_argument("--pairs", type=int, default=0, help="ADDs and DELs over which the daemon's memory is measured")
    parser.add_argument(
        "--against",
        metavar="CHECKOUT",
        type=Path,
        help="another checkout (scripts/setup and scripts/build-shim were run there) whose ADD and DEL are compared",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="Kubernetes, Contrail, datapath, network and web benchmarks with a small load, to check that they run",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    return parser.parse_args()


def _print_tables(report: dict[str, Any]) -> None:
    for name, content in report.items():
        print(f"\n{name}")
        for line in _lines(content, ()):
            print(f"  {line}")


def _lines(content: Any, path: tuple[str, ...]) -> list[str]:
    if not isinstance(content, dict):
        return [f"{' / '.join(path):<44} {content}"]
    if content and not any(isinstance(value, dict) for value in content.values()):
        values = "  ".join(f"{key} {value}" for key, value in content.items())
        return [f"{' / '.join(path):<44} {values}"]
    return [line for key, value in content.items() for line in _lines(value, (*path, str(key)))]


if __name__ == "__main__":
    sys.exit(main())
