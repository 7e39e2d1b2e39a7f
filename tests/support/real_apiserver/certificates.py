"""Keys, and self-signed certificates that are replaced while programs use them."""

import os
import subprocess
from pathlib import Path


def create_key(file: Path) -> None:
    """Creates a private key."""
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", file)


def replace_certificate(file: Path, key: Path, *, subject: str, days: int = 1) -> None:
    """Replaces a certificate, or creates it, for the address 127.0.0.1. It has expired if `days` is negative."""
    today = _openssl("req", "-x509", "-key", key, "-subj", subject, "-addext", "subjectAltName=IP:127.0.0.1")
    dated = _openssl("x509", "-signkey", key, "-days", days, content=today)
    replace(file, dated)


def replace(file: Path, content: bytes) -> None:
    """Replaces a file at once, as kubelet does with those that it mounts."""
    replacement = file.with_suffix(".new")
    replacement.write_bytes(content)
    os.replace(replacement, file)


def _openssl(*arguments: object, content: bytes = b"") -> bytes:
    command = ["openssl", *map(str, arguments)]
    return subprocess.run(command, input=content, check=True, timeout=30, capture_output=True).stdout
