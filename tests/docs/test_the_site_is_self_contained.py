"""The site as `scripts/docs` builds it: without a warning, and without anything that a browser fetches elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documentation import PAGES, ROOT

FETCHED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")
FETCHED_BY_STYLE = re.compile(r"(?:url\(|@import\s)[\"']?((?:https?:)?//[^\"')\s]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    mkdocs = os.path.join(os.path.dirname(sys.executable), "mkdocs")
    command = [mkdocs, "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=50)
    assert (built.returncode, built.stderr) == (0, "")
    return folder


def test_every_page_is_built(site: Path) -> None:
    assert {page.stem for page in PAGES.glob("*.md")} <= {page.stem for page in site.glob("*.html")}


def test_pages_fetch_nothing_from_other_hosts(site: Path) -> None:
    assert not {url for page in site.rglob("*.html") for url in FETCHED.findall(page.read_text())}


def test_styles_and_images_fetch_nothing_from_other_hosts(site: Path) -> None:
    files = [*site.rglob("*.css"), *site.rglob("*.svg"), *site.rglob("*.html")]
    assert not {url for file in files for url in FETCHED_BY_STYLE.findall(file.read_text())}
