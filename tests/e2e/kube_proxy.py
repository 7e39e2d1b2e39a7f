"""kube-proxy on a node, in one of its modes, as a cluster runs it."""

import json
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from tests.e2e.host import Host
from tests.e2e.host_process import HostProcess

MODES = ("iptables", "nftables")
_METRICS = "http://127.0.0.1:10249/metrics"
_SYNCED = re.compile(rb'^kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="(\w+)"} [1-9]', re.MULTILINE)
_TIMEOUT = 10.0
_UNCHANGED = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}


class KubeProxy(HostProcess):
    """`kube-proxy` of the node `name`; its files are below `work`. Ready when it has programmed both families."""

    def __init__(
        self, host: Host, work: Path, kubeconfig: Path, *, mode: str, name: str, pods: tuple[str, ...]
    ) -> None:
        command = shutil.which("kube-proxy")
        assert command is not None, "kube-proxy is not in PATH: scripts/e2e builds it"
        self._net = host.net
        configuration = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "hostnameOverride": name,
            "mode": mode,
            "clusterCIDR": ",".join(pods),
            "oomScoreAdj": 0,
            "conntrack": _UNCHANGED,
        }
        file = work / "kube-proxy.yaml"
        file.write_text(json.dumps(configuration))  # JSON is YAML
        super().__init__(host, [command, f"--config={file}"], work / "kube-proxy.log", is_ready=self._has_programmed)

    def _has_programmed(self) -> bool:
        try:
            # `/healthz` calls it healthy before the first time.
            with self._net.inside(), urllib.request.urlopen(_METRICS, timeout=_TIMEOUT) as answer:
                return set(_SYNCED.findall(answer.read())) == {b"IPv4", b"IPv6"}
        except (urllib.error.URLError, ConnectionError):
            return False
