"""Names and paths of everything that a run creates: one directory, and network namespaces with one prefix.

`--keep` leaves them in place and the next run of the same name removes them first. A lock prevents two concurrent runs
of one name.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.runtime.sandbox import NETNS_DIR, remove_sandbox
from demo.errors import DemoError

_RUN_DIR = "/run"
_NAME = re.compile(r"(?=.{1,40}\Z)(?!.*-demo-)[a-z0-9]+(-[a-z0-9]+)*-demo")


def run_name(text: str) -> str:
    """Returns the name of a run. Raises ValueError for one under which other programs may have files or namespaces.

    The directory of this name is removed, and every namespace whose name begins with it: of no other run, either.
    """
    if not _NAME.fullmatch(text):
        wanted = "lower-case letters, digits and '-', and '-demo' once, at its end; at most 40 characters"
        raise ValueError(f"{text!r} is no name of a demo: {wanted}")
    return text


class DemoResources(NamedTuple):
    """The resources of the run called `name`."""

    name: str

    @property
    def directory(self) -> str:
        """Directory of all files of the run."""
        return os.path.join(_RUN_DIR, self.name)

    @property
    def data_dir(self) -> str:
        """Data directory of the embedded node."""
        return os.path.join(self.directory, "data")

    @property
    def manager_configuration(self) -> str:
        """Configuration file of the embedded node."""
        return os.path.join(self.directory, "manager.yaml")

    @property
    def log_file(self) -> str:
        """Output of the embedded node."""
        return os.path.join(self.directory, "node.log")

    @property
    def process_file(self) -> str:
        """File with the identity of the node's process."""
        return os.path.join(self.directory, "node.json")

    @property
    def agent_socket(self) -> str:
        """Socket of the agent, reachable from any network namespace."""
        return os.path.join(self.data_dir, "agent.sock")

    @property
    def plugin_settings(self) -> str:
        """The plugin's node-wide configuration file."""
        return os.path.join(self.directory, "cni.json")

    @property
    def attachment_records(self) -> str:
        """The plugin's state directory."""
        return os.path.join(self.directory, "attachments")

    @property
    def result_cache(self) -> str:
        """The runtime's cache of results."""
        return os.path.join(self.directory, "cache")

    @property
    def networks(self) -> str:
        """Directory of the namespaces of virtual networks."""
        return os.path.join(self.directory, "networks")

    @property
    def node_namespace(self) -> str:
        """Network namespace of the simulated node; it holds the host ends of the interfaces."""
        return f"{self.name}-node"

    def pod_namespace(self, namespace: str, pod: str) -> str:
        """Returns the name of a pod's network namespace."""
        return f"{self.name}-{namespace}-{pod}"

    def namespaces(self) -> list[str]:
        """Returns the names of the existing network namespaces of this run."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(entry for entry in os.listdir(NETNS_DIR) if entry.startswith(f"{self.name}-"))
        return []

    def create(self) -> None:
        """Creates the directory, mode 0700, with the settings of the plugin, by which it is known as that of a demo."""
        os.makedirs(self.directory, mode=0o700)
        settings = {
            "agent-socket": self.agent_socket,
            "state-dir": self.attachment_records,
            "netns-dir": self.networks,
        }
        with open(self.plugin_settings, "w") as file:
            json.dump(settings, file)

    def remove(self) -> None:
        """Removes the namespaces, with all links in them, and the files. Idempotent.

        Raises DemoError, and removes nothing, if the directory is not of a demo.
        """
        if self._is_of_others():
            raise DemoError(f"{self.directory}: is not of a demo; choose another --name, or remove it")
        for namespace in self.namespaces():
            remove_sandbox(os.path.join(NETNS_DIR, namespace))
        networks = Namespaces(self.networks)
        for vni in networks.existing():
            networks.delete(vni)
        subprocess.run(["umount", "--quiet", "--lazy", self.networks], check=False, capture_output=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.directory)

    def _is_of_others(self) -> bool:
        try:
            found = os.listdir(self.directory)
        except FileNotFoundError:
            return False
        return bool(found) and os.path.basename(self.plugin_settings) not in found

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the name of the run. Raises DemoError if another run holds it.

        The lock is an abstract socket: the kernel releases it when the process ends.
        """
        with socket.socket(socket.AF_UNIX) as lock:
            try:
                # Bound but never listened on: the name alone is the lock.
                lock.bind(f"\0{self.name}")
            except OSError as error:
                raise DemoError(f"run {self.name}: already in progress") from error
            yield
