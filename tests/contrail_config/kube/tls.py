"""The certificates of these tests, and TLS contexts of servers."""

import base64
import ssl
from pathlib import Path

_FOLDER = Path(__file__).parent / "certificates"


def path(name: str) -> str:
    """Returns the path of a file (`authority.pem`, `client.key`)."""
    return str(_FOLDER / name)


def data(name: str) -> str:
    """Returns a file's contents as in a kubeconfig."""
    return base64.b64encode((_FOLDER / name).read_bytes()).decode()


def text(name: str) -> str:
    return (_FOLDER / name).read_text()


def server_context(name: str = "server") -> ssl.SSLContext:
    """Returns the context of a server with this certificate; it requests client certificates and requires none."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=path("authority.pem"))
    context.load_cert_chain(path(f"{name}.pem"), path(f"{name}.key"))
    context.verify_mode = ssl.CERT_OPTIONAL
    return context
