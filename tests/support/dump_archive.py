"""Archive that `contrailctl sysdump` writes, as its reader sees it."""

import tarfile
from pathlib import Path


def contents(file: Path) -> dict[str, str]:
    """The texts of the files by their names below the archive's only folder."""
    with tarfile.open(file) as archive:
        read = {member.name: archive.extractfile(member) for member in archive.getmembers() if member.isfile()}
        return {name.partition("/")[2]: part.read().decode() for name, part in read.items() if part is not None}
