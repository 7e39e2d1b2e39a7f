"""Where a test of `contrailctl cni` has its plugins, configurations and results."""

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
    """Directories of its own; the configuration directory holds LIST until `configure` says otherwise."""

    plugins: Plugins
    confs: Path
    cache: Path

    @classmethod
    def below(cls, folder: Path) -> "CniDirectories":
        """Makes one."""
        bench = cls(Plugins(folder / "bin"), folder / "net.d", folder / "cache")
        for directory in (bench.plugins.directory, bench.confs):
            directory.mkdir()
        bench.configure()
        return bench

    def configure(self, **keys: Any) -> None:
        """Writes LIST with other keys."""
        (self.confs / "10-net.conflist").write_text(json.dumps(LIST | keys))

    @property
    def directories(self) -> list[str]:
        """The options that say where to look for networks and plugins."""
        return ["--bin-dir", str(self.plugins.directory), "--conf-dir", str(self.confs)]

    @property
    def options(self) -> list[str]:
        """The same and the cache of results."""
        return [*self.directories, *self.cached]

    @property
    def cached(self) -> list[str]:
        """The option that says where results are cached."""
        return ["--cache-dir", str(self.cache)]
