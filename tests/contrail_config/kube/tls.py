"""The certificates of these tests, and servers that bear them."""

import base64
import ssl
from pathlib import Path

_FOLDER = Path(__file__).parent / "certificates"


def path(name: str) -> str:
    """Path of a file (`authority.pem`, `client.key`)."""
    return str(_FOLDER / name)


def data(name: str) -> str:
    """A file's contents as a kubeconfig file has them."""
    return base64.b64encode((_FOLDER / name).read_bytes()).decode()


def text(name: str) -> str:
    return (_FOLDER / name).read_text()


def server_context(name: str = "server") -> ssl.SSLContext:
    """What a server of this certificate needs; it asks clients for one of its authority, and takes those without."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=path("authority.pem"))
    context.load_cert_chain(path(f"{name}.pem"), path(f"{name}.key"))
    context.verify_mode = ssl.CERT_OPTIONAL
    return context
