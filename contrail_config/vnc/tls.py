"""TLS contexts from files. The server's certificate is always verified."""

import asyncio
import ssl

from contrail_config.vnc.errors import VncConfigurationError


async def load_tls(
    *, authority: str | None = None, certificate: str | None = None, key: str | None = None
) -> ssl.SSLContext:
    """Returns a context that trusts the authorities in a file, or the system's, with a client certificate if given.

    Raises VncConfigurationError, which names the key of the configuration and the file.
    """
    return await asyncio.to_thread(_load, authority, certificate, key)


def _load(authority: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=authority)
    except (OSError, ssl.SSLError) as error:
        raise VncConfigurationError(f"ca-file: {authority}: not a PEM certificate: {error}") from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # default since Python 3.13; CAs of many sites fail it
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise VncConfigurationError(
                f"certificate-file: {certificate}: certificate and key cannot be used: {error}"
            ) from error
    return context
