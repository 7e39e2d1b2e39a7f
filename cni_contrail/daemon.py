"""The node daemon, `contrail-cnid`."""

import sys


def main() -> int:
    """Says that there is none yet; exit status 2, as for a configuration that asks for what is not there."""
    sys.stderr.write("contrail-cnid: the node daemon is not supported yet\n")
    return 2
