"""TLS contexts from a CA bundle and client certificates that may rotate: a new one whenever one of them changed."""

import asyncio
import ssl

from contrail_config.kube.client_config import ClientCertificate
from contrail_config.kube.configuration.certificates import check_authority, load
from contrail_config.kube.configuration.last_known_good import LastKnownGood
from contrail_config.kube.configuration.value_source import ValueSource


class RotatingTls:
    """Believes servers that `authority` signed, the machine's own authorities if None, any server if not `verify`."""

    def __init__(self, authority: ValueSource | None, *, verify: bool = True) -> None:
        self._authority = _authority(authority) if authority else None
        self._verify = verify
        self._made_of: tuple[str | None, ClientCertificate | None] | None = None
        self._context: ssl.SSLContext | None = None

    async def context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """Returns the context, the same one as long as nothing changed. Raises KubeConfigurationError."""
        authority = await self._authority.current() if self._authority else None
        if self._context is None or self._made_of != (authority, certificate):
            self._context = await asyncio.to_thread(self._make, authority, certificate)
            self._made_of = authority, certificate
        return self._context

    def forget(self) -> None:
        """Has the authority read anew."""
        if self._authority:
            self._authority.forget()

    def _make(self, authority: str | None, certificate: ClientCertificate | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=authority)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # on since Python 3.13; authorities of many clusters fail it
        if not self._verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate:
            load(context, certificate)
        return context


def _authority(material: ValueSource) -> LastKnownGood[str]:
    return LastKnownGood(lambda content: check_authority(content, origin=material.origin), material)
