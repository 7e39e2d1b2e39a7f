"""Image with a static busybox, for pods and for their sandboxes: a docker archive, as no registry is there."""

import hashlib
import io
import json
import platform
import shutil
import tarfile
from pathlib import Path
from typing import Any

BUSYBOX = "docker.io/library/busybox:1"
"""Its name; its default command sleeps, so it serves as the image of sandboxes."""

_COMMANDS = ("cat", "hostname", "httpd", "ip", "mkdir", "mv", "nc", "ping", "seq", "sh", "sleep", "tail", "touch")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_busybox_image(file: Path) -> None:
    """Writes the archive."""
    layer = _layer()
    config = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["sleep", "2147483647"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [BUSYBOX], "Layers": ["layer.tar"]}]
    with tarfile.open(file, "w") as archive:
        _add(archive, "config.json", _json(config))
        _add(archive, "layer.tar", layer)
        _add(archive, "manifest.json", _json(manifest))


def _layer() -> bytes:
    found = shutil.which("busybox")
    assert found is not None, "busybox is not installed"
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as layer:
        _add(layer, "bin/busybox", Path(found).read_bytes(), mode=0o755)
        for command in _COMMANDS:
            _add(layer, f"bin/{command}", b"", type=tarfile.SYMTYPE, linkname="busybox")
        _add(layer, "tmp", b"", type=tarfile.DIRTYPE, mode=0o1777)
    return written.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, **fields: Any) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for field, value in fields.items():
        setattr(member, field, value)
    archive.addfile(member, io.BytesIO(content))


def _json(document: Any) -> bytes:
    return json.dumps(document).encode()
