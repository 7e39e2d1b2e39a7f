"""`contrail-agent --config FILE`: the agent of a node as a standalone process.

A standalone agent watches a store that other processes write. The embedded store belongs to a single process, whose
agent runs inside `contrail-manager --embedded`; here it is rejected.
"""

import argparse
import importlib.metadata
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

from agent_api.configuration import KubernetesStoreSettings, load_agent_configuration
from agent_api.process import run_agent
from contrail_config.vnc.settings import VncSettings
from contrail_service.errors import ConfigurationError
from contrail_service.logs import set_up_logs
from contrail_service.process import EXIT_WRONG_USE, run_service

_EMBEDDED = "store.kind: embedded is not supported by a standalone agent; run `contrail-manager --embedded`"
_MISSING = "store: required, for example {kind: kubernetes}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the agent and returns the exit status: 0 stopped by a signal, 1 died, 2 wrong use or configuration."""
    options = _parser().parse_args(arguments)
    set_up_logs(json_lines=options.log_format == "json", level=options.log_level)
    try:
        service = _service(options.config)
    except ConfigurationError as error:
        print(f"contrail-agent: {error}", file=sys.stderr)
        return EXIT_WRONG_USE
    return run_service(service, program="contrail-agent")


def _service(file: str) -> Callable[[], Coroutine[None, None, None]]:
    configuration = load_agent_configuration(file)
    store = configuration.store
    if isinstance(store, KubernetesStoreSettings):
        return partial(run_agent, configuration, store)
    if isinstance(store, VncSettings):
        from agent_api.contrail_process import run_agent_beside_contrail  # few nodes need it

        return partial(run_agent_beside_contrail, configuration, store)
    raise ConfigurationError(f"{file}: {_MISSING if store is None else _EMBEDDED}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="contrail-agent", description="The agent of a node.")
    parser.add_argument("--config", metavar="FILE", required=True, help="configuration file (YAML)")
    parser.add_argument("--log-format", choices=["text", "json"], default="text", help="format of the log lines")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    version = importlib.metadata.version("contrail-multinet")
    parser.add_argument("--version", action="version", version=f"contrail-multinet {version}")
    return parser
