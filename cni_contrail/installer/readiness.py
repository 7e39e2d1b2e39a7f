"""Readiness of a node for its first pod: shim, daemon, agent and datapath.

The runtime's own question, STATUS, covers the first three. The daemon answers it before it has programmed the kernel,
so the agent is asked for its report on that, too.
"""

import json
import os
import time

from cni_contrail.agent.client import agent_client
from cni_contrail.agent.connections import idle_connections
from cni_contrail.agent.http import HttpExchange
from cni_contrail.deadline import Deadline
from cni_contrail.errors import PluginError
from cni_contrail.installer.paths import PLUGIN
from cni_contrail.quoting import cut
from cni_contrail.runtime import versions
from cni_contrail.runtime.calls import PluginCalls
from cni_contrail.runtime.configuration import NetworkList
from cni_contrail.runtime.errors import CniRuntimeError, PluginTimeoutError
from cni_contrail.settings import Settings

_STATUS_TIMEOUT = 8.0  # seconds; STATUS waits for the agent, and its shim for a daemon that is being replaced
_AGENT_TIMEOUT = 1.0  # seconds
_INDEX_0 = "0"  # in the report, where networks are by VNI: every pod has index 0


def unready_reason(plugins: str, network: NetworkList, settings: Settings) -> str:
    """Returns why the node cannot take pods yet; empty if it can. `plugins` is the directory of the installed shim."""
    plugin = next(each for each in network.plugins if each.type == PLUGIN)
    asked = network._replace(version=versions.CURRENT)  # STATUS exists since then, and the shim knows it
    try:
        PluginCalls([plugins], os.environ).status(asked, plugin, deadline=time.monotonic() + _STATUS_TIMEOUT)
        return _datapath_problem(settings)
    except PluginTimeoutError:
        return f"contrail-cnid: no answer to STATUS within {_STATUS_TIMEOUT:g} s"
    except CniRuntimeError as error:
        return " ".join(str(error).split())
    except PluginError as error:
        return error.message
    finally:
        idle_connections.close()  # once the node is ready nothing is asked any more


def _datapath_problem(settings: Settings) -> str:
    deadline = Deadline(_AGENT_TIMEOUT)
    answer = HttpExchange(agent_client(settings).endpoint, "GET", "/datapath/report", b"", deadline).response()
    if answer.status == 404:  # another program connects the pods
        return ""
    try:
        report = json.loads(answer.body)["report"]
        if report is None:
            return "datapath: contrail-cnid has not reported on it yet"
        problem = report["problems"].get(_INDEX_0, "")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return f"datapath: the agent's report is malformed: {cut(str(error))}"
    return cut(f"datapath: index 0: {problem}") if problem else ""
