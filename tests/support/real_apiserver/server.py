"""kube-apiserver with an administrator and service accounts."""

import contextlib
import hashlib
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from tests.support.free_port import free_port
from tests.support.real_apiserver.certificates import create_key
from tests.support.real_apiserver.etcd import Etcd
from tests.support.real_apiserver.process import ServerProcess

BINARIES = "KUBEBUILDER_ASSETS"
"""Environment variable with the folder of kube-apiserver and etcd; `scripts/e2e` sets it."""

SERVICE_SUBNETS = ("10.96.0.0/16", "fd00:96::/112")
"""Where the addresses of Services are from."""

_ADMIN = "admin"
_AUDITED = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts:contrail"]}],
}
_TIMEOUT = 30.0


class ApiServer(ServerProcess):
    """Stores its data below `work`; its address is the same after each start. `options` are added to the command."""

    address: ClassVar = "127.0.0.1"

    def __init__(self, work: Path, binaries: Path, *options: str) -> None:
        self.etcd = Etcd(work, binaries / "etcd")
        self._work = work
        self._port = free_port()
        settings = (f"--{name}={value}" for name, value in self._settings().items())
        command = [str(binaries / "kube-apiserver"), *settings, *options]
        super().__init__(command, work / "kube-apiserver.log", is_ready=self._is_ready)

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self._port}"

    @property
    def _audit_log(self) -> Path:
        return self._work / "audit.log"

    @property
    def service_account_key(self) -> Path:
        """The private key that signs tokens of service accounts."""
        return self._work / "service-accounts.key"

    @property
    def authority(self) -> Path:
        """The self-signed certificate that it created at its first start."""
        return self._work / "certificates" / "apiserver.crt"

    def forget_history(self) -> None:
        """Compacts all history, as after some time; restarts the server, since its watch cache has history too."""
        self.etcd.compact()
        self.kill()
        self.start()

    def kubeconfig(self, *, token: str = _ADMIN) -> Path:
        """Writes a kubeconfig with a token, by default the administrator's, and returns its path."""
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "user"}}],
            "current-context": "real",
        }
        file = self._work / f"{hashlib.sha256(token.encode()).hexdigest()[:12]}.kubeconfig"
        file.write_text(json.dumps(document))
        return file

    def service_account_token(self, namespace: str, name: str, *, pod: str | None = None, seconds: int = 3600) -> str:
        """Returns a token of an existing service account; with `pod` bound to that pod, as kubelet mounts it there."""
        asked: dict[str, Any] = {"spec": {"expirationSeconds": seconds}}
        if pod is not None:
            asked["spec"]["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": pod}
        answer = self.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", asked)
        token: str = answer["status"]["token"]
        return token

    def audited(self) -> list[dict[str, Any]]:
        """Audit events of all requests by service accounts of the namespace `contrail`, oldest first."""
        return [json.loads(line) for line in self._audit_log.read_text().splitlines()]

    def ask(self, method: str, path: str, body: Any = None, *, token: str = _ADMIN) -> Any:
        """Sends one request, as the administrator unless a token is given, and returns the JSON response."""
        encoded = json.dumps(body).encode() if body is not None else None
        return json.loads(self._ask(method, path, encoded, token=token))

    def patch(self, path: str, body: Any) -> Any:
        """Patches as `kubectl patch`, by the rules of the kind for each list, and returns the JSON response."""
        kind = "application/strategic-merge-patch+json"
        return json.loads(self._ask("PATCH", path, json.dumps(body).encode(), kind=kind))

    def table(self, path: str) -> list[dict[str, Any]]:
        """The table that `kubectl get -o wide` shows: each row's cells by column name."""
        table = json.loads(self._ask("GET", path, None, accept="application/json;as=Table;g=meta.k8s.io;v=v1"))
        names = [column["name"] for column in table["columnDefinitions"]]
        return [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]

    def metrics(self) -> str:
        """Its Prometheus metrics."""
        return self._ask("GET", "/metrics", None).decode()

    def _is_ready(self) -> bool:
        try:
            return self._ask("GET", "/readyz", None) == b"ok"
        except (urllib.error.URLError, ConnectionError, FileNotFoundError, ssl.SSLError):
            return False  # before the file of its certificate is there, or whole

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        accept: str = "*/*",
        token: str = _ADMIN,
        kind: str = "",
    ) -> bytes:
        kind = kind or ("application/merge-patch+json" if method == "PATCH" else "application/json")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind, "Accept": accept}
        request = urllib.request.Request(self.url + path, method=method, data=body, headers=headers)
        trusted = ssl.create_default_context(cafile=str(self.authority))
        with urllib.request.urlopen(request, timeout=_TIMEOUT, context=trusted) as answer:
            answered: bytes = answer.read()
        return answered

    def _settings(self) -> dict[str, object]:
        """Writes the files that it needs, and returns its options."""
        key = self.service_account_key
        create_key(key)
        tokens = self._work / "tokens.csv"
        tokens.write_text(f'{_ADMIN},{_ADMIN},{_ADMIN},"system:masters"\n')
        policy = self._work / "audit.json"
        policy.write_text(json.dumps(_AUDITED))
        return {
            "audit-policy-file": policy,
            "audit-log-path": self._audit_log,
            "etcd-servers": self.etcd.url,
            "etcd-compaction-interval": 0,  # tests compact the history themselves
            "bind-address": self.address,
            "secure-port": self._port,
            "advertise-address": self.address,
            "endpoint-reconciler-type": "none",  # endpoints must not be loopback addresses
            "cert-dir": self._work / "certificates",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": key,
            "service-account-signing-key-file": key,
            "service-cluster-ip-range": ",".join(SERVICE_SUBNETS),
            "token-auth-file": tokens,
            "authorization-mode": "RBAC",
            "disable-admission-plugins": "ServiceAccount",  # it waits for objects of a controller, and none runs
        }


@contextlib.contextmanager
def serve_real_apiserver(work: Path, *options: str) -> Iterator[ApiServer]:
    """Yields a server that runs until the context is left, with the binaries named by the environment."""
    server = ApiServer(work, Path(os.environ[BINARIES]), *options)
    try:
        server.etcd.start()
        server.start()
        yield server
    finally:
        server.kill()
        server.etcd.kill()
