"""`contrail-k8s-cni` as the Contrail CNI plugin, as a file on a host: `write_executable` makes it.

The environment says what a call is about; address and folder are in the first file of `/etc/cni/net.d` with a name of
the plugin's, without which all calls fail. It rejects versions after 0.3.1, and does not know of meta plugins.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.netns import Netns
from tests.support.upstream_plugin import PluginError, Sandbox, UpstreamPlugin

_ROOT = Path(__file__).parents[2]
_CONFIGURATIONS = Path("/etc/cni/net.d")
_ENDINGS = ("contrail.conf", "tf-cni.conf")
_VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.3.1")


class _Existing(Netns):
    def __init__(self, path: str) -> None:
        self.name = Path(path).name
        self.path = path


class _OfTheProcess(Netns):
    def __init__(self) -> None:
        self.path = "/proc/self/ns/net"

    def ip(self, *args: str) -> str:
        return subprocess.run(["ip", *args], check=True, capture_output=True, text=True, timeout=10).stdout


def write_executable(file: Path) -> None:
    """Writes the executable."""
    start = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from {__name__} import main; main()"
    file.write_text(f"#!{sys.executable}\n{start}\n")
    file.chmod(0o755)


def main() -> None:
    """Makes a call, and ends the process."""
    try:
        response, status = _call(json.load(sys.stdin)), 0
    except (PluginError, OSError, subprocess.CalledProcessError) as error:
        response, status = {"code": 100, "msg": str(error)}, 1
    json.dump(response, sys.stdout)
    sys.exit(status)


def _call(configuration: Any) -> Any:
    if configuration["cniVersion"] not in _VERSIONS:
        raise PluginError("incompatible CNI versions")
    section = _configured()
    address = section["vrouter-ip"], section["vrouter-port"]
    plugin = UpstreamPlugin(address, _OfTheProcess(), Path(section["config-dir"]))
    pod = dict(re.findall(r"(K8S_POD_NAMESPACE|K8S_POD_NAME)=([a-zA-Z0-9.-]+)", os.environ["CNI_ARGS"]))
    netns = _Existing(os.environ["CNI_NETNS"])
    sandbox = Sandbox(netns, os.environ["CNI_CONTAINERID"], pod["K8S_POD_NAME"], pod["K8S_POD_NAMESPACE"])
    if os.environ["CNI_COMMAND"] == "ADD":
        return plugin.add(sandbox)
    plugin.delete(sandbox)
    return {}


def _configured() -> Any:
    files = sorted(each for each in _CONFIGURATIONS.iterdir() if each.name.endswith(_ENDINGS))
    if not files:
        raise PluginError("open /etc/kubernetes/cni/net.d/: no such file or directory")
    return json.loads(files[0].read_text())["contrail"]
