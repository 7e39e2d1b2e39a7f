"""TLS contexts from a CA bundle and client certificates that may rotate: a new one whenever one of them changed."""

import asyncio
import os
import ssl

from contrail_config.kube.access import ClientCertificate
from contrail_config.kube.configuration.material import Material
from contrail_config.kube.errors import KubeConfigurationError


class RotatingTls:
    """Believes servers that `authority` signed, the machine's own authorities if None, any server if not `verify`."""

    def __init__(self, authority: Material | None, *, verify: bool = True) -> None:
        self._authority = authority
        self._verify = verify
        self._made_of: tuple[bytes | None, ClientCertificate | None] | None = None
        self._context: ssl.SSLContext | None = None

    async def context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """Returns the context, the same one as long as nothing changed. Raises KubeConfigurationError."""
        authority = await self._authority.read() if self._authority else None
        if self._context is None or self._made_of != (authority, certificate):
            self._context = await asyncio.to_thread(self._make, authority, certificate)
            self._made_of = authority, certificate
        return self._context

    def forget(self) -> None:
        """Has the authority read anew."""
        if self._authority:
            self._authority.forget()

    def _make(self, authority: bytes | None, certificate: ClientCertificate | None) -> ssl.SSLContext:
        context = self._trusting(authority)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # on since Python 3.13; authorities of many clusters fail it
        if not self._verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate:
            _load(context, certificate)
        return context

    def _trusting(self, authority: bytes | None) -> ssl.SSLContext:
        if authority is None or self._authority is None:
            return ssl.create_default_context()
        try:
            return ssl.create_default_context(cadata=authority.decode("ascii", "replace"))
        except ssl.SSLError as error:
            raise KubeConfigurationError(f"{self._authority.origin}: is no PEM certificate: {error}") from error


def _load(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Loads a certificate through memory, since the library takes files only and a key belongs on no disk."""
    descriptor = os.memfd_create("client-certificate")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(certificate.chain + b"\n" + certificate.key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as error:
        raise KubeConfigurationError(f"{certificate.origin}: certificate and key do not fit: {error}") from error
    finally:
        os.close(descriptor)
