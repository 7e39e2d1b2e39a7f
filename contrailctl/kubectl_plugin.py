"""`kubectl contrail`: contrailctl as a plugin of kubectl, which runs `kubectl-contrail`.

The only difference: `status` is always that of the cluster, whatever processes the environment names. kubectl asks
`kubectl_complete-contrail` for completions: one per line, then what its shell has to do.
"""

import sys

from contrailctl import cli
from contrailctl.arguments import make_parser

_NO_FILES = ":4"  # ShellCompDirectiveNoFileComp of kubectl's completion


def main() -> int:
    """Runs one command and returns its exit status."""
    return cli.main(program=cli.KUBECTL_PLUGIN)


def complete() -> int:
    """Prints the completions of the last argument."""
    from contrailctl.completion import completions

    for each in completions(make_parser(program=cli.KUBECTL_PLUGIN, version=""), sys.argv[1:]):
        sys.stdout.write(f"{each}\n")
    sys.stdout.write(f"{_NO_FILES}\n")
    return 0
