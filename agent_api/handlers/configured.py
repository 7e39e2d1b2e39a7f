"""`/vm-cfg`: a pod's interfaces as configured, by the name of its machine.

What upstream's plugin does not know (`wait`, `uid`) stands in the query, which upstream ignores.
"""

import re

from aiohttp import web

from agent_api.errors import BadRequestError
from agent_api.handlers.operation import Operation, Parameter, answer_json, not_found, text_parameter
from agent_api.metrics import time_not_counted
from agent_api.responses import ConfiguredInterface
from agent_api.virtual_machine_index import VirtualMachineIndex

LONGEST_WAIT = 60.0
"""Seconds for which `?wait=` holds an answer at most."""

_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)

_WAIT = Parameter(
    "wait",
    "Seconds for which the answer is held until the list is there; 60 at most.",
    {"type": "string", "pattern": "^[0-9]{1,9}(\\.[0-9]{1,9})?$", "default": "0"},
)
_UID = Parameter(
    "uid", "Answered only for the pod of this uid, or of this config hash.", {"type": "string", "minLength": 1}
)


class ConfiguredPages:
    """The page that plugins ask first."""

    def __init__(self, machines: VirtualMachineIndex) -> None:
        self._machines = machines

    def operations(self) -> list[Operation]:
        """Returns the pages."""
        return [
            Operation(
                "GET",
                "/vm-cfg/{name}",
                "A pod's interfaces as configured, in index order.",
                self._show,
                answer=list[ConfiguredInterface],
                query=(_WAIT, _UID),
                errors=(500,),
            )
        ]

    async def _show(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        uid = text_parameter(request, "uid")
        wait = _seconds(request)
        served = self._machines.named(name, uid=uid)
        if served is None and wait:
            with time_not_counted():
                served = await self._machines.awaited(name, uid=uid, seconds=min(wait, LONGEST_WAIT))
        if served is None:
            raise not_found()
        return answer_json(served.vm_cfg())


def _seconds(request: web.Request) -> float:
    """Seconds; 0 if the request does not ask to wait."""
    text = request.query.get("wait", "0")
    if _SECONDS.fullmatch(text) is None:
        raise BadRequestError(f"wait: {text[:80]!r} is no number of seconds")
    return float(text)
