"""TLS contexts from a CA bundle and client certificates that may rotate: rebuilt when one of them changes."""

import asyncio
import ssl

from contrail_config.kube.client_config import ClientCertificate
from contrail_config.kube.configuration.certificates import check_authority, load
from contrail_config.kube.configuration.last_known_good import LastKnownGood
from contrail_config.kube.configuration.value_source import ValueSource


class RotatingTls:
    """TLS contexts that trust `authority`, or the system's authorities if None, or any server if not `verify`."""

    def __init__(self, authority: ValueSource | None, *, verify: bool = True) -> None:
        self.origin = authority.origin if authority else "the system's authorities"
        self._authority = _authority(authority) if authority else None
        self._verify = verify
        self._inputs: tuple[str | None, ClientCertificate | None] | None = None
        self._context: ssl.SSLContext | None = None

    async def context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """Returns the context, the same object until its inputs change. Raises KubeConfigurationError."""
        authority = await self._authority.current() if self._authority else None
        if self._context is None or self._inputs != (authority, certificate):
            self._context = await asyncio.to_thread(self._build, authority, certificate)
            self._inputs = authority, certificate
        return self._context

    def invalidate(self) -> None:
        """Makes the next call read the CA bundle again."""
        if self._authority:
            self._authority.invalidate()

    def _build(self, authority: str | None, certificate: ClientCertificate | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=authority)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # default since Python 3.13; CAs of many clusters fail it
        if not self._verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate:
            load(context, certificate)
        return context


def _authority(source: ValueSource) -> LastKnownGood[str]:
    return LastKnownGood(lambda content: check_authority(content, origin=source.origin), source)
