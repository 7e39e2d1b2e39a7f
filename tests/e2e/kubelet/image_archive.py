"""Images as docker archives, as no registry is there."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_image(file: Path, names: Sequence[str], layer: bytes, settings: Mapping[str, object]) -> None:
    """Writes an archive with one image of one layer."""
    config = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": dict(settings),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": list(names), "Layers": ["layer.tar"]}]
    with tarfile.open(file, "w") as archive:
        add(archive, "config.json", json.dumps(config).encode())
        add(archive, "layer.tar", layer)
        add(archive, "manifest.json", json.dumps(manifest).encode())


def add(archive: tarfile.TarFile, name: str, content: bytes, **fields: Any) -> None:
    """Adds a file to a layer; `fields` are those of its TarInfo."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for field, value in fields.items():
        setattr(member, field, value)
    archive.addfile(member, io.BytesIO(content))
