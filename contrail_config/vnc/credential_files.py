"""Credential files: passwords, and TLS contexts from authorities and client certificates, which may rotate.

Files are read again every few seconds, and at once when a server rejected what they held. What cannot be used, such as
a file that is being rewritten, leaves the previous contents in use: see `value_source` and `last_known_good`.
"""

import contextlib
import ssl
from collections.abc import Iterator
from typing import Final

from contrail_config.kube.client_config import Credential
from contrail_config.kube.configuration.credentials import ConfiguredCredentials
from contrail_config.kube.configuration.last_known_good import LastKnownGood
from contrail_config.kube.configuration.tls import RotatingTls
from contrail_config.kube.configuration.value_source import FileValue, ValueSource
from contrail_config.kube.errors import KubeConfigurationError
from contrail_config.vnc.errors import VncConfigurationError

_LONGEST_PASSWORD: Final = 4096  # bytes


class Password:
    """Password from a source that may change. Its text is not shown."""

    def __init__(self, source: ValueSource) -> None:
        self._value = LastKnownGood(lambda content: _check_password(content, origin=source.origin), source)

    async def current(self) -> str:
        """Returns the password. Raises VncConfigurationError, without any of the text, if there was none yet."""
        with _as_configuration_error():
            return await self._value.current()

    def invalidate(self) -> bool:
        """Makes the next call read the source again; returns False if it cannot change."""
        return self._value.invalidate()


class Tls:
    """TLS contexts that trust the authorities in a file, or the system's, with a client certificate if given.

    The server's certificate is always verified. `certificate` is a chain and its key.
    """

    def __init__(
        self, *, authority: FileValue | None = None, certificate: tuple[FileValue, FileValue] | None = None
    ) -> None:
        self._contexts = RotatingTls(authority)
        self._certificate = ConfiguredCredentials(certificate=certificate)

    async def context(self) -> ssl.SSLContext:
        """Returns the context, the same object until a file changes. Raises VncConfigurationError."""
        with _as_configuration_error():
            credential = await self._certificate.current()
            return await self._contexts.context(credential.certificate)

    def invalidate(self) -> None:
        """Makes the next call read all files again: one side did not accept the other's certificate."""
        self._contexts.invalidate()
        self._certificate.invalidate(Credential())


async def context_of(tls: Tls | None) -> ssl.SSLContext | bool:
    """Returns what aiohttp takes as `ssl`: a context, or True for its default. Raises VncConfigurationError."""
    return True if tls is None else await tls.context()


def _check_password(content: bytes, *, origin: str) -> str:
    """Returns the text without the line end. Raises KubeConfigurationError, as `LastKnownGood` wants."""
    try:
        password = content.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise KubeConfigurationError(f"{origin}: not UTF-8") from error
    if not password or "\n" in password or len(content) > _LONGEST_PASSWORD:
        raise KubeConfigurationError(f"{origin}: must be one line, the password")
    return password


@contextlib.contextmanager
def _as_configuration_error() -> Iterator[None]:
    try:
        yield
    except KubeConfigurationError as error:
        raise VncConfigurationError(str(error)) from error
