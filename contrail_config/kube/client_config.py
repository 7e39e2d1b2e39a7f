"""Client configuration: how to reach the API server and with which credentials.

`configuration` loads it from kubeconfig or from the pod's service account; `transport` uses it.
"""

import ssl
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class ClientCertificate(NamedTuple):
    """Certificate chain and key as PEM; `origin` names where they were configured, for errors."""

    chain: bytes
    key: bytes
    origin: str


class Credential(NamedTuple):
    """A bearer token, a client certificate, both or neither.

    `token_origin` is the kubeconfig entry or file of the token, for errors.
    """

    token: str = ""
    certificate: ClientCertificate | None = None
    token_origin: str = ""

    @property
    def origin(self) -> str:
        """The kubeconfig entries or files of token and certificate, for errors; empty without both."""
        certificate = self.certificate.origin if self.certificate else ""
        return " and ".join(filter(None, (self.token_origin, certificate)))


class Credentials(Protocol):
    """Provider of the current credential. It is called for each request, so it caches."""

    async def current(self) -> Credential:
        """Returns the credential. Raises KubeConfigurationError."""

    def invalidate(self, rejected: Credential) -> bool:
        """Drops the cached credential, which the server rejected; returns False if the next one is the same."""

    async def close(self) -> None:
        """Stops a running credential plugin; a later call of `current` starts it again."""


class Tls(Protocol):
    """Provider of the TLS context of new connections. `origin` names the authorities that it trusts, for errors."""

    origin: str

    async def context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """Returns the context, the same object until its inputs change. Raises KubeConfigurationError."""

    def invalidate(self) -> None:
        """Drops the cached CA bundle: the server's certificate was not trusted."""


class Anonymous:
    """Credentials of an anonymous client."""

    async def current(self) -> Credential:
        """Returns an empty credential."""
        return Credential()

    def invalidate(self, _rejected: Credential) -> bool:
        """Returns False: there is nothing to refresh."""
        return False

    async def close(self) -> None:
        """Does nothing."""


_ANONYMOUS = Anonymous()


@dataclass(frozen=True)
class ClientConfig:
    """How to reach one server: `https://host:port/path`, or `http` if `tls` is None."""

    server: str
    credentials: Credentials = _ANONYMOUS
    tls: Tls | None = None
    server_name: str | None = None
    """Name in the server's certificate, if it is not the host of the URL."""
    proxy: str | None = None
