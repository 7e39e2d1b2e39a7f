"""A network namespace in the machine, for runtimes that are given one."""

import hashlib
import uuid
from collections.abc import Callable

from tests.e2e.host import Host


class Sandbox:
    """A named one, which `ip` works in. No two have one name, so that no test meets what another one left."""

    def __init__(self, host: Host) -> None:
        self._machine = host
        self.name = f"sandbox-{uuid.uuid4().hex[:12]}"
        self.path = f"/run/netns/{self.name}"
        host.run("ip", "netns", "add", self.name)

    @property
    def container_id(self) -> str:
        """What cnitool calls the container, for want of one; so the pod's name too unless CNI_ARGS tell it."""
        return f"cnitool-{hashlib.sha512(self.path.encode()).hexdigest()[:20]}"

    def ip(self, *arguments: str) -> str:
        """Runs `ip` in it and returns what it printed."""
        return self._machine.run("ip", "-n", self.name, *arguments)

    def remove(self) -> None:
        """Removes it; one that is gone is no error."""
        if self._machine.path(self.path).exists():
            self._machine.run("ip", "netns", "del", self.name)


MakeSandbox = Callable[[], Sandbox]
