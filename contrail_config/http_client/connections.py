"""Connections of aiohttp: texts of their errors, and how to drop one."""

import os
import ssl

import aiohttp


def abort(response: aiohttp.ClientResponse) -> None:
    """Drops the connection without a TLS close_notify, before which the rest of the stream would have to be read."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


def connection_problem(error: aiohttp.ClientError | OSError) -> str:
    """Returns the address and the system's message, or the problem of a certificate; aiohttp's texts show neither."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"cannot connect to {error.host}:{error.port}: {_cause_text(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {_cause_text(error.os_error)}"
    return str(error) or type(error).__name__


def _cause_text(cause: Exception) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the server's certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and (cause.errno or 0) > 0:
        return os.strerror(cause.errno or 0)
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
