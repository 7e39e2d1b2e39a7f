"""Image with the programs of Multus, where Multus's own images have them."""

import io
import tarfile
from pathlib import Path

from tests.e2e.kubelet.control_plane import program
from tests.e2e.kubelet.image_archive import add, write_image

_NAME = "ghcr.io/k8snetworkplumbingwg/multus-cni"
_TAGS = ("v4.3.0", "v4.3.0-thick")
"""Those of the overlays. Of the base of Multus's images its programs use `/etc/passwd` and `/var/run`."""

_FOLDER = "usr/src/multus-cni/bin"
_PROGRAMS = {
    "install_multus": "install_multus",
    "multus": "multus",
    "multus-daemon": "multus-daemon",
    "multus-shim": "multus-shim",
    "passthru": "passthru-cni",
    "thin_entrypoint": "thin_entrypoint",
}
"""The names in the image, with those of the packages."""

_USERS = b"root:x:0:0:root:/root:/sbin/nologin\n"
"""The daemon asks for the name of its user."""

_IN_ROOT = ("install_multus", "thin_entrypoint")


def write_multus_image(file: Path) -> None:
    """Writes the archive."""
    write_image(file, [f"{_NAME}:{tag}" for tag in _TAGS], _layer(), {"Env": ["PATH=/"]})


def _layer() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as layer:
        for name, package in _PROGRAMS.items():
            add(layer, f"{_FOLDER}/{name}", Path(program(package)).read_bytes(), mode=0o755)
        for name in _IN_ROOT:
            add(layer, name, b"", type=tarfile.SYMTYPE, linkname=f"{_FOLDER}/{name}")
        add(layer, "etc/passwd", _USERS)
        add(layer, "var/run", b"", type=tarfile.SYMTYPE, linkname="/run")
        add(layer, "tmp", b"", type=tarfile.DIRTYPE, mode=0o1777)
    return written.getvalue()
