"""Directories of plugins, configurations and cached results for tests of `contrailctl cni`."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.scripted_plugins import Plugins

LIST: dict[str, Any] = {
    "cniVersion": "1.0.0",
    "name": "net",
    "plugins": [{"type": "bridge", "capabilities": {"mac": True}}],
}


class CniDirectories(NamedTuple):
    """Plugin, configuration and cache directories of one test; the network is LIST unless `configure` changes it."""

    plugins: Plugins
    confs: Path
    cache: Path

    @classmethod
    def below(cls, folder: Path) -> "CniDirectories":
        """Creates the directories below a folder."""
        bench = cls(Plugins(folder / "bin"), folder / "net.d", folder / "cache")
        for directory in (bench.plugins.directory, bench.confs):
            directory.mkdir()
        bench.configure()
        return bench

    def configure(self, **keys: Any) -> None:
        """Writes LIST with these keys replaced."""
        (self.confs / "10-net.conflist").write_text(json.dumps(LIST | keys))

    @property
    def directories(self) -> list[str]:
        """Command line options for the configuration and plugin directories."""
        return ["--bin-dir", str(self.plugins.directory), "--conf-dir", str(self.confs)]

    @property
    def options(self) -> list[str]:
        """`directories` and `cached`."""
        return [*self.directories, *self.cached]

    @property
    def cached(self) -> list[str]:
        """Command line option for the cache of results."""
        return ["--cache-dir", str(self.cache)]
