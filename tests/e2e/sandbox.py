"""Network namespace on a host, for runtimes that take an existing one."""

import hashlib
import uuid
from collections.abc import Callable

from tests.e2e.host import Host


class Sandbox:
    """A network namespace with a unique name, so that tests never reuse each other's state."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.name = f"sandbox-{uuid.uuid4().hex[:12]}"
        self.path = f"/run/netns/{self.name}"
        host.run("ip", "netns", "add", self.name)

    @property
    def container_id(self) -> str:
        """The container ID that cnitool derives from the path; also the pod's name unless CNI_ARGS has one."""
        return f"cnitool-{hashlib.sha512(self.path.encode()).hexdigest()[:20]}"

    def ip(self, *arguments: str) -> str:
        """Runs `ip` in the namespace and returns its output."""
        return self._host.run("ip", "-n", self.name, *arguments)

    def remove(self) -> None:
        """Deletes the namespace. Idempotent."""
        if self._host.path(self.path).exists():
            self._host.run("ip", "netns", "del", self.name)


MakeSandbox = Callable[[], Sandbox]
