"""Access to a Contrail API server from settings: which files hold passwords and certificates."""

from contrail_config.kube.configuration.value_source import FileValue
from contrail_config.vnc.authentication import Authentication, BasicAuthentication
from contrail_config.vnc.client import VncAccess
from contrail_config.vnc.credential_files import Password, Tls
from contrail_config.vnc.keystone import KeystoneUser
from contrail_config.vnc.settings import KeystoneSettings, VncSettings


async def load_access(settings: VncSettings) -> VncAccess:
    """Returns how to reach the servers, after reading all files once: they may change later.

    Raises VncConfigurationError, which names key and file.
    """
    access = VncAccess(
        settings.urls,
        keystone=_keystone_user(settings.keystone),
        authentication=_authentication(settings),
        tls=_tls(settings),
        keystone_tls=_keystone_tls(settings.keystone),
    )
    await _read_files(access)
    return access


async def _read_files(access: VncAccess) -> None:
    if access.keystone is not None:
        await access.keystone.password.current()
    if access.authentication is not None:
        await access.authentication.headers()
    for tls in (access.tls, access.keystone_tls):
        if tls is not None:
            await tls.context()


def _keystone_user(settings: KeystoneSettings | None) -> KeystoneUser | None:
    if settings is None:
        return None
    return KeystoneUser(
        settings.url.rstrip("/"),
        settings.user,
        Password(FileValue(settings.password_file, "keystone.password-file")),
        settings.project,
        settings.user_domain,
        settings.project_domain,
    )


def _authentication(settings: VncSettings) -> Authentication | None:
    if settings.basic is None:
        return None
    password = Password(FileValue(settings.basic.password_file, "basic.password-file"))
    return BasicAuthentication(settings.basic.user, password)


def _tls(settings: VncSettings) -> Tls | None:
    if not settings.uses_tls:
        return None
    authority = None if settings.ca_file is None else FileValue(settings.ca_file, "ca-file")
    if settings.certificate_file is None or settings.key_file is None:  # the one needs the other
        return Tls(authority=authority)
    pair = FileValue(settings.certificate_file, "certificate-file"), FileValue(settings.key_file, "key-file")
    return Tls(authority=authority, certificate=pair)


def _keystone_tls(settings: KeystoneSettings | None) -> Tls | None:
    if settings is None or not settings.url.startswith("https:"):
        return None
    return Tls(authority=None if settings.ca_file is None else FileValue(settings.ca_file, "keystone.ca-file"))
