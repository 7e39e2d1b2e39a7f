"""Who asks, by what stands in the configuration or in files."""

import re

from contrail_config.kube.client_config import ClientCertificate, Credential
from contrail_config.kube.configuration.certificates import check_certificate
from contrail_config.kube.configuration.last_known_good import LastKnownGood
from contrail_config.kube.configuration.value_source import ValueSource
from contrail_config.kube.errors import KubeConfigurationError

_TOKEN = re.compile(rb"[\x21-\x7e]+")


class KeptCredentials:
    """A token, a client certificate with its key, both or none."""

    def __init__(
        self, *, token: ValueSource | None = None, certificate: tuple[ValueSource, ValueSource] | None = None
    ) -> None:
        self._token = _token(token) if token else None
        self._certificate = _certificate(*certificate) if certificate else None

    async def current(self) -> Credential:
        """Returns the credential. Raises KubeConfigurationError."""
        token = await self._token.current() if self._token else ""
        return Credential(token, await self._certificate.current() if self._certificate else None)

    def forget(self, _refused: Credential) -> bool:
        """Has files read anew; False if there are none."""
        forgotten = [part.forget() for part in (self._token, self._certificate) if part]
        return any(forgotten)

    async def end(self) -> None:
        """Nothing was begun."""


def _token(material: ValueSource) -> LastKnownGood[str]:
    return LastKnownGood(lambda content: check_token(content, origin=material.origin), material)


def _certificate(chain: ValueSource, key: ValueSource) -> LastKnownGood[ClientCertificate]:
    return LastKnownGood(lambda *pair: check_certificate(ClientCertificate(pair[0], pair[1], chain.origin)), chain, key)


def check_token(content: bytes, *, origin: str) -> str:
    """Returns a token as it can stand in a header. Raises KubeConfigurationError, which does not show it."""
    token = content.strip()
    if not _TOKEN.fullmatch(token):
        raise KubeConfigurationError(f"{origin}: is no token: it is empty, or has blanks or other characters within it")
    return token.decode()
