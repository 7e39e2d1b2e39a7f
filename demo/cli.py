"""`scripts/demo`: simulates a node and its container runtime for the example pods and verifies the result.

Exit status: 0 all checks passed, 1 a check or the demo failed, 2 wrong use, 130 interrupted.
"""

import argparse
import os
import sys

from cni_contrail.runtime.errors import CniRuntimeError
from cni_contrail.runtime.interrupts import sigterm_interrupts
from contrailctl.errors import ContrailctlError
from demo.errors import DemoError
from demo.node import stop_kept_node
from demo.resources import DemoResources, run_name
from demo.run import run_demo

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    """Runs the demo and returns its exit status."""
    arguments = _parse(argv)
    if os.geteuid() != 0:
        print("demo: permission denied: network namespaces need root; run it with sudo", file=sys.stderr)
        return EXIT_FAILED
    resources = DemoResources(arguments.name)
    try:
        with sigterm_interrupts(), resources.locked():
            return _run(resources, arguments)
    except KeyboardInterrupt:
        print("demo: interrupted; everything was removed", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (DemoError, CniRuntimeError, ContrailctlError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return EXIT_FAILED


def _run(resources: DemoResources, arguments: argparse.Namespace) -> int:
    stop_kept_node(resources)
    resources.remove()
    if arguments.stop:
        return 0
    findings = run_demo(
        resources, manifests=arguments.manifests, conflist=arguments.conflist, keep=arguments.keep, show=_show
    )
    for finding in findings:
        print(f"demo: check failed: {finding}", file=sys.stderr)
    if findings:
        return EXIT_FAILED
    _show("all checks passed" if arguments.keep else "everything was removed; all checks passed")
    return 0


def _show(text: str) -> None:
    print(text, flush=True)


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__.partition("\n")[0])
    after = parser.add_mutually_exclusive_group()
    after.add_argument("--keep", action="store_true", help="leave node and pods running and print commands to inspect")
    after.add_argument("--stop", action="store_true", help="only remove what an earlier --keep left")
    parser.add_argument("--manifests", metavar="DIR", default="deploy/examples", help="default: deploy/examples")
    parser.add_argument(
        "--conflist",
        metavar="FILE",
        default="deploy/cni/10-contrail.conflist",
        help="network configuration list that the runtime executes",
    )
    parser.add_argument(
        "--name",
        default="contrail-demo",
        help="name of the run, such as my-demo, which begins those of its files and namespaces",
    )
    arguments = parser.parse_args(argv)
    try:
        run_name(arguments.name)
    except ValueError as error:
        parser.error(f"argument --name: {error}")
    return arguments
