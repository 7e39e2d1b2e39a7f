"""Why there was no answer, in words for whoever operates the cluster: an HTTP library tells it in its own."""

import os
import ssl

import aiohttp


def why_unreachable(error: aiohttp.ClientError | OSError) -> str:
    """What to look at: the address and the system's own words; of a certificate, what is wrong with it."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"cannot connect to {error.host}:{error.port}: {_words(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {_words(error.os_error)}"
    return str(error) or type(error).__name__


def _words(cause: Exception) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and (cause.errno or 0) > 0:
        return os.strerror(cause.errno or 0)
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
