"""Image with a static busybox, for pods and for their sandboxes."""

import io
import shutil
import tarfile
from pathlib import Path

from tests.e2e.kubelet.image_archive import add, write_image

BUSYBOX = "docker.io/library/busybox:1"
"""Its name; its default command sleeps, so it serves as the image of sandboxes."""

_COMMANDS = ("cat", "hostname", "httpd", "ip", "mkdir", "mv", "nc", "ping", "seq", "sh", "sleep", "tail", "touch")


def write_busybox_image(file: Path) -> None:
    """Writes the archive."""
    write_image(file, [BUSYBOX], _layer(), {"Env": ["PATH=/bin"], "Cmd": ["sleep", "2147483647"]})


def _layer() -> bytes:
    found = shutil.which("busybox")
    assert found is not None, "busybox is not installed"
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as layer:
        add(layer, "bin/busybox", Path(found).read_bytes(), mode=0o755)
        for command in _COMMANDS:
            add(layer, f"bin/{command}", b"", type=tarfile.SYMTYPE, linkname="busybox")
        add(layer, "tmp", b"", type=tarfile.DIRTYPE, mode=0o1777)
    return written.getvalue()
