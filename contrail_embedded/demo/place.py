"""Where a run keeps its things: one directory and network namespaces of one prefix, so that all of it can be found.

`--keep` leaves them behind, and the next run of the same name takes them away first. A lock sees to it that there is
one run of a name at a time.
"""

import contextlib
import os
import shutil
import socket
from collections.abc import Iterator
from typing import NamedTuple

from cni_contrail.runtime.sandbox import NETNS_DIR, remove_sandbox
from contrail_embedded.demo.errors import DemoError

_RUN_DIR = "/run"


class DemoDirectory(NamedTuple):
    """The names of everything that a run makes; `name` is the run's own."""

    name: str

    @property
    def directory(self) -> str:
        """Holds all files of the run."""
        return os.path.join(_RUN_DIR, self.name)

    @property
    def data_dir(self) -> str:
        """The embedded node's."""
        return os.path.join(self.directory, "data")

    @property
    def log_file(self) -> str:
        """The embedded node's output."""
        return os.path.join(self.directory, "node.log")

    @property
    def process_file(self) -> str:
        """Says which process the node is."""
        return os.path.join(self.directory, "node.json")

    @property
    def agent_socket(self) -> str:
        """Where the plugin reaches the agent from any network namespace."""
        return os.path.join(self.data_dir, "agent.sock")

    @property
    def plugin_settings(self) -> str:
        """The plugin's node-wide file."""
        return os.path.join(self.directory, "cni.json")

    @property
    def attachment_records(self) -> str:
        """Where the plugin keeps what it attached."""
        return os.path.join(self.directory, "attachments")

    @property
    def result_cache(self) -> str:
        """Where the runtime keeps results."""
        return os.path.join(self.directory, "cache")

    @property
    def node_namespace(self) -> str:
        """Name of the network namespace that stands for the node: host ends of interfaces are there."""
        return f"{self.name}-node"

    def pod_namespace(self, namespace: str, pod: str) -> str:
        """Name of a pod's network namespace."""
        return f"{self.name}-{namespace}-{pod}"

    def namespaces(self) -> list[str]:
        """Names of all network namespaces of this run that exist."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(entry for entry in os.listdir(NETNS_DIR) if entry.startswith(f"{self.name}-"))
        return []

    def make(self) -> None:
        """Makes the directory, for root alone."""
        os.makedirs(self.directory, mode=0o700)

    def remove(self) -> None:
        """Removes namespaces, with all links in them, and files."""
        for namespace in self.namespaces():
            remove_sandbox(os.path.join(NETNS_DIR, namespace))
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.directory)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the name: an abstract socket, which ends with its process. Raises DemoError if another run has it."""
        with socket.socket(socket.AF_UNIX) as lock:
            try:
                lock.bind(f"\0{self.name}")
            except OSError as error:
                raise DemoError(f"another run named {self.name} is going on") from error
            yield
