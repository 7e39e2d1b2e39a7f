"""Access to a Contrail API server from settings: reads passwords and certificates from their files."""

import asyncio
import ssl
from pathlib import Path
from typing import Final

from contrail_config.vnc.authentication import Authentication, BasicAuthentication
from contrail_config.vnc.client import VncAccess
from contrail_config.vnc.errors import VncConfigurationError
from contrail_config.vnc.keystone import KeystoneUser
from contrail_config.vnc.settings import KeystoneSettings, VncSettings
from contrail_config.vnc.tls import load_tls

_LONGEST_PASSWORD: Final = 4096  # bytes


async def load_access(settings: VncSettings) -> VncAccess:
    """Returns how to reach the servers. Raises VncConfigurationError, which names key and file."""
    return VncAccess(
        settings.urls,
        keystone=await _keystone_user(settings.keystone),
        authentication=await _authentication(settings),
        tls=await _tls(settings),
        keystone_tls=await _keystone_tls(settings.keystone),
    )


async def _keystone_user(settings: KeystoneSettings | None) -> KeystoneUser | None:
    if settings is None:
        return None
    return KeystoneUser(
        settings.url.rstrip("/"),
        settings.user,
        await _password("keystone.password-file", settings.password_file),
        settings.project,
        settings.user_domain,
        settings.project_domain,
    )


async def _authentication(settings: VncSettings) -> Authentication | None:
    if settings.basic is None:
        return None
    password = await _password("basic.password-file", settings.basic.password_file)
    return BasicAuthentication(settings.basic.user, password)


async def _tls(settings: VncSettings) -> ssl.SSLContext | None:
    if not settings.uses_tls:
        return None
    return await load_tls(authority=settings.ca_file, certificate=settings.certificate_file, key=settings.key_file)


async def _keystone_tls(settings: KeystoneSettings | None) -> ssl.SSLContext | None:
    if settings is None or not settings.url.startswith("https:"):
        return None
    try:
        return await load_tls(authority=settings.ca_file)
    except VncConfigurationError as error:
        raise VncConfigurationError(f"keystone.{error}") from error


async def _password(key: str, file: str) -> str:
    """Returns the file's text without the line end. Raises VncConfigurationError, without any of the text."""
    try:
        content = await asyncio.to_thread(Path(file).read_bytes)
        password = content.decode().rstrip("\r\n")
    except OSError as error:
        raise VncConfigurationError(f"{key}: {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise VncConfigurationError(f"{key}: {file}: not UTF-8") from error
    if not password or "\n" in password or len(content) > _LONGEST_PASSWORD:
        raise VncConfigurationError(f"{key}: {file}: must be one line, the password")
    return password
