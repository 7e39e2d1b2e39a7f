#!/usr/bin/env python3
"""Version of the package, from the tags of releases (`v0.1.0`), for the build (pyproject.toml) and for image builds.

| Checkout | Version |
|---|---|
| at a tag, unchanged | `0.1.0` |
| 3 commits later | `0.1.1.dev3+gHASH`, with `.dirty` if tracked files were changed |
| before the first tag | `0.1.0.dev3+gHASH` |
| without history | what the environment variable CONTRAIL_VERSION says, else `0+unknown` |

A source archive carries its version in `PKG-INFO`; its builds do not run this.
"""

import os
import re
import subprocess
from pathlib import Path

FIRST = "0.1.0"
"""The first release, which development leads to until there is a tag."""

_ROOT = Path(__file__).resolve().parent.parent
_DESCRIBED = re.compile(r"v(\d+)\.(\d+)\.(\d+)-(\d+)-(g[0-9a-f]+)(-dirty)?")


def version() -> str:
    """The version of the checkout, as PEP 440 writes it. Raises ValueError for a tag such as `v1`."""
    if stated := os.environ.get("CONTRAIL_VERSION"):
        return stated
    # A copy of the files, such as that in an image build, may lie in somebody else's repository.
    if not (_ROOT / ".git").exists() or not (commit := _git("describe", "--always", "--exclude=*", "--dirty")):
        return "0+unknown"
    described = _describe()
    if described is None:
        local = f"g{commit}".replace("-", ".")
        return f"{FIRST}.dev{_git('rev-list', '--count', 'HEAD')}+{local}"
    found = _DESCRIBED.fullmatch(described)
    if not found:
        raise ValueError(f"tag {described}: must have the form v1.2.3")
    major, minor, patch, commits, commit, dirty = found.groups()
    if commits == "0" and not dirty:
        return f"{major}.{minor}.{patch}"
    return f"{major}.{minor}.{int(patch) + 1}.dev{commits}+{commit}{'.dirty' if dirty else ''}"


def last_release() -> str | None:
    """The newest release before or at the checkout; None before the first one."""
    described = _describe()
    return described[1:].partition("-")[0] if described else None


def _describe() -> str | None:
    """The last tag of a release with the number of commits since, their hash and `-dirty`."""
    return _git("describe", "--tags", "--long", "--dirty", "--match=v[0-9]*", "--exclude=*[!v.0-9]*")


def _git(*arguments: str) -> str | None:
    """The output of git; None if it fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


if __name__ == "__main__":
    print(version())
