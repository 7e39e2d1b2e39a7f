"""Directories that the installer works with, and the files in them that it installs."""

import contextlib
import hashlib
from typing import NamedTuple

PLUGIN = "contrail-k8s-cni"
LOOPBACK = "loopback"
SETTINGS = "cni.json"
CONFLIST = "10-contrail.conflist"


class Paths(NamedTuple):
    """`root` is where the node's root directory is mounted, empty if it is that of this process.

    `configuration` and `plugins` have what is to be installed; `run_dir` lock and report, `state_dir` the records of
    attachments.
    """

    root: str
    configuration: str
    plugins: str
    run_dir: str
    state_dir: str

    def digest(self) -> str:
        """Returns a digest of all that is to be installed, whether or not it is valid; a file may be missing."""
        digest = hashlib.sha256()
        for folder, names in ((self.plugins, (PLUGIN, LOOPBACK)), (self.configuration, (SETTINGS, CONFLIST))):
            for name in names:
                content = b""
                with contextlib.suppress(OSError), open(f"{folder}/{name}", "rb") as file:
                    content = file.read()
                digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()
