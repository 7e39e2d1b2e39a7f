"""Settings of a Contrail API server: the configuration keys that manager and agent share, and their validation.

Passwords are in files, so that a configuration can be shown to anybody.
"""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from yarl import URL


class _Section(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Base of all sections."""


class KeystoneSettings(_Section, frozen=True):
    """Keystone v3: a user, who gets tokens of a project. `url` ends with `/v3`."""

    url: str
    user: str
    password_file: str
    project: str = "admin"
    user_domain: str = "Default"
    project_domain: str = "Default"
    ca_file: str | None = None


class BasicSettings(_Section, frozen=True):
    """Basic authentication, as on the server's local port 8095."""

    user: str
    password_file: str


class VncSettings(_Section, frozen=True, tag_field="kind", tag="vnc"):
    """The servers of one Contrail controller. `poll_interval`: seconds between lists, where they have no watch."""

    url: str | tuple[str, ...]
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    keystone: KeystoneSettings | None = None
    basic: BasicSettings | None = None
    poll_interval: Annotated[float, msgspec.Meta(ge=1, le=3600)] = 10.0

    @property
    def urls(self) -> tuple[str, ...]:
        """The servers, in the order in which they are tried."""
        return (self.url,) if isinstance(self.url, str) else self.url

    @property
    def uses_tls(self) -> bool:
        """Whether any of the servers is reached by TLS."""
        return any(URL(url).scheme == "https" for url in self.urls)


def setting_problems(settings: VncSettings) -> Iterator[tuple[str, str]]:
    """Yields what is wrong, each with the path of its key below the section."""
    if not settings.urls:
        yield "url", "at least one is required"
    malformed = [url for url in settings.urls if not _is_server(url)]
    for url in malformed:
        yield "url", f"{_without_user(url)!r} is not http://HOST:PORT or https://HOST:PORT"
    if not malformed and settings.urls and not settings.uses_tls:
        for key, file in _tls_files(settings):
            if file is not None:
                yield key, "needs a url that begins with https://"
    if (settings.certificate_file is None) != (settings.key_file is None):
        missing = "key-file" if settings.key_file is None else "certificate-file"
        yield missing, "required: certificate-file and key-file need each other"
    if settings.keystone is not None:
        if settings.basic is not None:
            yield "basic", "cannot be combined with keystone"
        if not _is_keystone(settings.keystone.url):
            yield (
                "keystone.url",
                f"{settings.keystone.url!r} is not the URL of a v3 endpoint, such as https://HOST:5000/v3",
            )


def _tls_files(settings: VncSettings) -> tuple[tuple[str, str | None], ...]:
    return (
        ("ca-file", settings.ca_file),
        ("certificate-file", settings.certificate_file),
        ("key-file", settings.key_file),
    )


def _without_user(url: str) -> str:
    """Returns the text without what may be a password."""
    scheme, separator, rest = url.rpartition("//")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _is_server(text: str) -> bool:
    url = _parsed(text)
    return url is not None and url.path == "/" and not text.endswith("?")


def _is_keystone(text: str) -> bool:
    url = _parsed(text)
    return url is not None and url.path.rstrip("/").endswith("/v3")


def _parsed(text: str) -> URL | None:
    """Returns a URL of a server, None if it is none or has a user, a query or a fragment."""
    try:
        url = URL(text)
        port = url.port
    except ValueError:
        return None
    unexpected = url.user or url.password or url.query_string or url.fragment
    return url if url.scheme in ("http", "https") and url.host and port and not unexpected else None
