"""Arguments of the live part of `contrailctl check connectivity`, and of the programs that run in its pods."""

import argparse

from contrailctl.check.live.target import Target, parse_target

DEFAULT_MAX_PODS = 100


def add_live(connectivity: argparse.ArgumentParser) -> None:
    """Adds the options of the live part."""
    live = connectivity.add_argument_group("live check")
    live.add_argument(
        "--live", action="store_true", help="also create temporary pods, which reach each other, and remove them"
    )
    live.add_argument(
        "--network",
        dest="networks",
        metavar="NAMESPACE/NAD",
        action="append",
        help="only these networks besides index 0; default: all that NADs define",
    )
    live.add_argument(
        "--live-namespace", metavar="NAME", help="existing namespace of the pods; default: a temporary one"
    )
    live.add_argument("--image", metavar="IMAGE", help="of the pods; default: that of the node's contrail-node pod")
    live.add_argument(
        "--outside",
        metavar="ADDRESS[:PORT]",
        action="append",
        type=_target,
        help="what pods must reach outside, by ICMP or TCP; may be repeated",
    )
    live.add_argument(
        "--max-pods", metavar="NUMBER", type=_positive, default=DEFAULT_MAX_PODS, help=f"default: {DEFAULT_MAX_PODS}"
    )


def add_pod_programs(
    operations: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    """Adds what temporary pods run; no help lists it."""
    respond = operations.add_parser("respond", description="Tells who connects which pod this is.", parents=[common])
    respond.add_argument("identity", metavar="POD")
    operations.add_parser("probe", description="Makes the probes on the standard input.", parents=[common])


def _target(text: str) -> Target:
    try:
        return parse_target(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not ADDRESS, IPV4:PORT or [IPV6]:PORT") from error


def _positive(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
