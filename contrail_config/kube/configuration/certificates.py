"""PEM certificates: validation, and loading into a TLS context."""

import os
import ssl

from contrail_config.kube.client_config import ClientCertificate
from contrail_config.kube.errors import KubeConfigurationError


def check_authority(content: bytes, *, origin: str) -> str:
    """Returns a CA bundle as TLS contexts take it. Raises KubeConfigurationError."""
    authority = content.decode("ascii", "replace")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=authority)
    except (ssl.SSLError, ValueError) as error:  # ValueError if it is empty
        raise KubeConfigurationError(f"{origin}: not a PEM certificate: {error}") from error
    return authority


def check_certificate(certificate: ClientCertificate) -> ClientCertificate:
    """Returns the certificate if it can be used. Raises KubeConfigurationError."""
    load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)
    return certificate


def load(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Loads a client certificate into a TLS context. Raises KubeConfigurationError."""
    # `ssl` loads certificates from files only; a memfd keeps the private key off the disk
    descriptor = os.memfd_create("client-certificate")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(certificate.chain + b"\n" + certificate.key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as error:
        raise KubeConfigurationError(f"{certificate.origin}: certificate and key do not match: {error}") from error
    finally:
        os.close(descriptor)
