"""`scripts/demo`: plays a node and its container runtime for the example pods, and says whether all of it held.

Exit status: 0 all held, 1 something did not, 2 wrong use, 130 interrupted.
"""

import argparse
import os
import sys

from cni_contrail.runtime.errors import CniRuntimeError
from cni_contrail.runtime.interrupts import sigterm_interrupts
from contrail_embedded.demo.errors import DemoError
from contrail_embedded.demo.node import stop_kept_node
from contrail_embedded.demo.place import DemoDirectory
from contrail_embedded.demo.play import play
from contrailctl.errors import ContrailctlError

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    """Runs the demo and returns its exit status."""
    arguments = _parse(argv)
    if os.geteuid() != 0:
        print("demo: network namespaces need root: run it with sudo", file=sys.stderr)
        return EXIT_FAILED
    place = DemoDirectory(arguments.name)
    try:
        with sigterm_interrupts(), place.locked():
            return _run(place, arguments)
    except KeyboardInterrupt:
        print("demo: interrupted; nothing is left", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (DemoError, CniRuntimeError, ContrailctlError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return EXIT_FAILED


def _run(place: DemoDirectory, arguments: argparse.Namespace) -> int:
    stop_kept_node(place)
    place.remove()
    if arguments.stop:
        return 0
    findings = play(place, manifests=arguments.manifests, conflist=arguments.conflist, keep=arguments.keep, say=_say)
    for finding in findings:
        print(f"demo: did not hold: {finding}", file=sys.stderr)
    if findings:
        return EXIT_FAILED
    _say("all of it held" if arguments.keep else "nothing is left; all of it held")
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__.partition("\n")[0])
    after = parser.add_mutually_exclusive_group()
    after.add_argument("--keep", action="store_true", help="leave node and pods running, and tell how to look at them")
    after.add_argument("--stop", action="store_true", help="only take away what an earlier --keep left")
    parser.add_argument("--manifests", metavar="DIR", default="deploy/examples", help="default: deploy/examples")
    parser.add_argument(
        "--conflist", metavar="FILE", default="deploy/cni/10-contrail.conflist", help="what the runtime runs"
    )
    parser.add_argument("--name", default="contrail-demo", help="of the run: its files and namespaces bear it")
    return parser.parse_args(argv)
