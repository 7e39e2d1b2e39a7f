"""The API server, with an administrator and as many service accounts as the objects in it name."""

import contextlib
import hashlib
import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.free_port import free_port
from tests.support.real_apiserver.etcd import Etcd
from tests.support.real_apiserver.process import ServerProcess

BINARIES = "KUBEBUILDER_ASSETS"
"""Environment variable that names the folder of kube-apiserver and etcd; `scripts/e2e` sets it."""

_ADMIN = "admin"
_AUDITED = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts:contrail"]}],
}
_TIMEOUT = 30.0


class ApiServer(ServerProcess):
    """Keeps everything below `work`. At the same address after each start."""

    def __init__(self, work: Path, binaries: Path) -> None:
        self.etcd = Etcd(work, binaries / "etcd")
        self._work = work
        self._port = free_port()
        command = [str(binaries / "kube-apiserver"), *self._options()]
        super().__init__(command, work / "kube-apiserver.log", is_ready=self._is_ready)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def _audit_log(self) -> Path:
        return self._work / "audit.log"

    @property
    def authority(self) -> Path:
        """The certificate that it made for itself when it was first started."""
        return self._work / "certificates" / "apiserver.crt"

    def forget_history(self) -> None:
        """Knows no resourceVersion but the present one, as after an hour; it was away for a moment."""
        self.etcd.compact()
        self.kill()
        self.start()

    def kubeconfig(self, *, token: str = _ADMIN) -> Path:
        """Writes the configuration of a client that has a token, by default the administrator's."""
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

    def service_account_token(self, namespace: str, name: str, *, seconds: int = 3600) -> str:
        """Returns a token as kubelet mounts it into pods, of a service account that is there."""
        asked = {"spec": {"expirationSeconds": seconds}}
        answer = self.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", asked)
        token: str = answer["status"]["token"]
        return token

    def audited(self) -> list[dict[str, Any]]:
        """All that service accounts of the namespace `contrail` asked for, oldest first, as audit events."""
        return [json.loads(line) for line in self._audit_log.read_text().splitlines()]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Does one request as the administrator and returns the JSON that is answered."""
        return json.loads(self._ask(method, path, json.dumps(body).encode() if body is not None else None))

    def table(self, path: str) -> list[dict[str, Any]]:
        """What `kubectl get -o wide` shows of a list: each row's cells by the names of their columns."""
        table = json.loads(self._ask("GET", path, None, accept="application/json;as=Table;g=meta.k8s.io;v=v1"))
        names = [column["name"] for column in table["columnDefinitions"]]
        return [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]

    def metrics(self) -> str:
        """What it counts of itself, in the form of Prometheus."""
        return self._ask("GET", "/metrics", None).decode()

    def _is_ready(self) -> bool:
        try:
            return self._ask("GET", "/readyz", None) == b"ok"
        except (urllib.error.URLError, ConnectionError, FileNotFoundError):
            return False

    def _ask(self, method: str, path: str, body: bytes | None, *, accept: str = "*/*") -> bytes:
        headers = {"Authorization": f"Bearer {_ADMIN}", "Content-Type": "application/json", "Accept": accept}
        request = urllib.request.Request(self.url + path, method=method, data=body, headers=headers)
        trusted = ssl.create_default_context(cafile=str(self.authority))
        with urllib.request.urlopen(request, timeout=_TIMEOUT, context=trusted) as answer:
            answered: bytes = answer.read()
        return answered

    def _options(self) -> list[str]:
        key = self._work / "service-accounts.key"
        subprocess.run(
            ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key)], check=True, timeout=30
        )
        tokens = self._work / "tokens.csv"
        tokens.write_text(f'{_ADMIN},{_ADMIN},{_ADMIN},"system:masters"\n')
        policy = self._work / "audit.json"
        policy.write_text(json.dumps(_AUDITED))
        settings = {
            "audit-policy-file": policy,
            "audit-log-path": self._audit_log,
            "etcd-servers": self.etcd.url,
            "etcd-compaction-interval": 0,  # history is forgotten when a test says so
            "bind-address": "127.0.0.1",
            "secure-port": self._port,
            "advertise-address": "127.0.0.1",
            "endpoint-reconciler-type": "none",  # none may be at the loopback
            "cert-dir": self._work / "certificates",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": key,
            "service-account-signing-key-file": key,
            "service-cluster-ip-range": "10.96.0.0/16",
            "token-auth-file": tokens,
            "authorization-mode": "RBAC",
            "disable-admission-plugins": "ServiceAccount",  # it waits for a controller's objects
        }
        return [f"--{name}={value}" for name, value in settings.items()]


@contextlib.contextmanager
def serve_real_apiserver(work: Path) -> Iterator[ApiServer]:
    """Gives a server that runs until the context is left, with the binaries that the environment names."""
    server = ApiServer(work, Path(os.environ[BINARIES]))
    try:
        server.etcd.start()
        server.start()
        yield server
    finally:
        server.kill()
        server.etcd.kill()
