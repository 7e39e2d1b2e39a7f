"""Static and file-based credentials: a token, a client certificate or both."""

import re

from contrail_config.kube.client_config import ClientCertificate, Credential
from contrail_config.kube.configuration.certificates import check_certificate
from contrail_config.kube.configuration.last_known_good import LastKnownGood
from contrail_config.kube.configuration.value_source import ValueSource
from contrail_config.kube.errors import KubeConfigurationError

_TOKEN = re.compile(rb"[\x21-\x7e]+")


class ConfiguredCredentials:
    """Credentials from a token and from a pair of client certificate and key; both are optional."""

    def __init__(
        self, *, token: ValueSource | None = None, certificate: tuple[ValueSource, ValueSource] | None = None
    ) -> None:
        self._token = _token(token) if token else None
        self._token_origin = token.origin if token else ""
        self._certificate = _certificate(*certificate) if certificate else None

    async def current(self) -> Credential:
        """Returns the credential. Raises KubeConfigurationError."""
        token = await self._token.current() if self._token else ""
        certificate = await self._certificate.current() if self._certificate else None
        return Credential(token, certificate, self._token_origin)

    def invalidate(self, _rejected: Credential) -> bool:
        """Makes the next call read the files again; returns False if there are none."""
        invalidated = [part.invalidate() for part in (self._token, self._certificate) if part]
        return any(invalidated)

    async def close(self) -> None:
        """Does nothing."""


def _token(source: ValueSource) -> LastKnownGood[str]:
    return LastKnownGood(lambda content: check_token(content, origin=source.origin), source)


def _certificate(chain: ValueSource, key: ValueSource) -> LastKnownGood[ClientCertificate]:
    return LastKnownGood(lambda *pair: check_certificate(ClientCertificate(pair[0], pair[1], chain.origin)), chain, key)


def check_token(content: bytes, *, origin: str) -> str:
    """Returns a token that is valid in a header. Raises KubeConfigurationError, which does not show the token."""
    token = content.strip()
    if not _TOKEN.fullmatch(token):
        raise KubeConfigurationError(f"{origin}: not a token: empty, or with whitespace or other invalid characters")
    return token.decode()
