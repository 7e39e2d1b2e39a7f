"""Certificates as PEM: whether they can be used, and how they come into a TLS context."""

import os
import ssl

from contrail_config.kube.client_config import ClientCertificate
from contrail_config.kube.errors import KubeConfigurationError


def check_authority(content: bytes, *, origin: str) -> str:
    """Returns an authority as contexts take it. Raises KubeConfigurationError."""
    authority = content.decode("ascii", "replace")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=authority)
    except (ssl.SSLError, ValueError) as error:  # a ValueError if it is empty
        raise KubeConfigurationError(f"{origin}: is no PEM certificate: {error}") from error
    return authority


def check_certificate(certificate: ClientCertificate) -> ClientCertificate:
    """Returns it if it can be shown. Raises KubeConfigurationError."""
    load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)
    return certificate


def load(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Loads a certificate through memory, since the library takes files only and a key belongs on no disk.

    Raises KubeConfigurationError.
    """
    descriptor = os.memfd_create("client-certificate")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(certificate.chain + b"\n" + certificate.key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as error:
        raise KubeConfigurationError(f"{certificate.origin}: certificate and key do not fit: {error}") from error
    finally:
        os.close(descriptor)
