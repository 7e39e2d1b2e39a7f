"""Other writers: programs that write the pods of our cluster too, such as Contrail's kube-manager.

Both would give interfaces to each pod. Such a program is seen only by the virtual machines that it writes: it takes no
lease of ours, and holds none on the API server.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from contrail_config.errors import StoreError
from contrail_config.vnc.mapping import machines

_MAX_NAMED: Final = 3


class OtherWriters:
    """Names of the virtual machines that others wrote, by uuid."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._names: dict[str, str] = {}
        self._seen = asyncio.Event()

    def listed(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Takes notice of all virtual machines."""
        self._names.clear()
        for item in items:
            self.saw(item)

    def saw(self, item: Mapping[str, Any]) -> None:
        """Takes notice of a virtual machine."""
        if machines.is_of_another_program(item, self._cluster):
            self._names[item["uuid"]] = str(item["fq_name"][-1])
            self._seen.set()
        else:
            self._names.pop(item["uuid"], None)

    def deleted(self, uuid: str) -> None:
        """Takes notice of a deletion."""
        self._names.pop(uuid, None)

    def check(self) -> None:
        """Raises StoreError, which names some of them, if there are any."""
        if not self._names:
            return
        named = ", ".join(sorted(self._names.values())[:_MAX_NAMED])
        count = f"{len(self._names)} virtual machines" if len(self._names) > 1 else "a virtual machine"
        raise StoreError(
            f"Contrail API server: another program, such as Contrail's kube-manager, wrote {count} of cluster"
            f" {self._cluster} ({named}): stop it, and set store.take-over to keep the pods that it wrote"
        )

    async def wait(self) -> None:
        """Waits until another program writes one. Raises StoreError then."""
        while True:
            self._seen.clear()
            self.check()
            await self._seen.wait()
