"""How the server is reached and who asks: what `configuration` finds out and `transport` uses."""

import ssl
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class ClientCertificate(NamedTuple):
    """Certificate chain and key as PEM; `origin` says where they stand."""

    chain: bytes
    key: bytes
    origin: str


class Credential(NamedTuple):
    """Who asks: a bearer token, a client certificate, both or none."""

    token: str = ""
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """Gives what is valid now; asked for each request, so it keeps what it read for a while."""

    async def current(self) -> Credential:
        """Returns the credential. Raises KubeConfigurationError."""

    def forget(self, refused: Credential) -> bool:
        """The server refused it: what was kept is read anew next time. False if nothing else can come of that."""

    async def end(self) -> None:
        """Ends what was begun in order to get them; they can be asked for again."""


class Tls(Protocol):
    """What connections are secured with."""

    async def context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """Returns the context, the same one as long as nothing changed. Raises KubeConfigurationError."""

    def forget(self) -> None:
        """The server's certificate was not believed: what was kept is read anew next time."""


class Anonymous:
    """Nobody in particular."""

    async def current(self) -> Credential:
        """Nothing."""
        return Credential()

    def forget(self, _refused: Credential) -> bool:
        """Nothing can come of it."""
        return False

    async def end(self) -> None:
        """Nothing was begun."""


_ANONYMOUS = Anonymous()


@dataclass(frozen=True)
class ClientConfig:
    """A server, as `https://host:port/path`; without `tls` it is `http`."""

    server: str
    credentials: Credentials = _ANONYMOUS
    tls: Tls | None = None
    server_name: str | None = None
    """Name that its certificate bears, if not its host's."""
    proxy: str | None = None
