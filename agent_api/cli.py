"""`contrail-agent --config FILE`: the agent of a node as a process of its own.

Such an agent follows a store that other processes write. The one store that is there so far belongs to a single
process, so its agent runs inside `contrail-manager --embedded`; on its own it is refused once its configuration was
checked.
"""

import argparse
import sys
from collections.abc import Sequence

from agent_api.configuration import EmbeddedStore, KubernetesStore, VncStore, load_agent_configuration
from contrail_service.errors import ConfigurationError
from contrail_service.process import EXIT_WRONG_USE

_NOT_YET: dict[type, str] = {
    EmbeddedStore: (
        "store.kind: embedded belongs to one process: its agent is part of `contrail-manager --embedded`;"
        " an agent of its own is not supported yet"
    ),
    KubernetesStore: "store.kind: kubernetes is not supported yet",
    VncStore: "store.kind: vnc is not supported yet",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    parser = argparse.ArgumentParser(prog="contrail-agent", description="The agent of a node.")
    parser.add_argument("--config", metavar="FILE", required=True, help="the configuration, YAML")
    options = parser.parse_args(arguments)
    try:
        refusal = _NOT_YET[type(load_agent_configuration(options.config).store)]
    except ConfigurationError as error:
        refusal = str(error)
    print(f"contrail-agent: {refusal}", file=sys.stderr)
    return EXIT_WRONG_USE
