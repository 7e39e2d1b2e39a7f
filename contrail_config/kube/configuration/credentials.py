"""Who asks, by what stands in the configuration or in files."""

import re

from contrail_config.kube.access import ClientCertificate, Credential
from contrail_config.kube.configuration.material import Material
from contrail_config.kube.errors import KubeConfigurationError

_TOKEN = re.compile(rb"[\x21-\x7e]+")


class KeptCredentials:
    """A token, a client certificate with its key, both or none."""

    def __init__(self, *, token: Material | None = None, certificate: tuple[Material, Material] | None = None) -> None:
        self._token = token
        self._certificate = certificate

    async def current(self) -> Credential:
        """Returns the credential. Raises KubeConfigurationError."""
        return Credential(await self._read_token(), await self._read_certificate())

    def forget(self, _refused: Credential) -> bool:
        """Has files read anew; False if there are none."""
        forgotten = [part.forget() for part in (self._token, *(self._certificate or ())) if part]
        return any(forgotten)

    async def _read_token(self) -> str:
        if self._token is None:
            return ""
        return check_token(await self._token.read(), origin=self._token.origin)

    async def _read_certificate(self) -> ClientCertificate | None:
        if self._certificate is None:
            return None
        chain, key = self._certificate
        return ClientCertificate(await chain.read(), await key.read(), chain.origin)


def check_token(content: bytes, *, origin: str) -> str:
    """Returns a token as it can stand in a header. Raises KubeConfigurationError, which does not show it."""
    token = content.strip()
    if not _TOKEN.fullmatch(token):
        raise KubeConfigurationError(f"{origin}: is no token: it is empty, or has blanks or other characters within it")
    return token.decode()
