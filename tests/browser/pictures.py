"""Takes the pictures of the web page for the documentation: an embedded node on `deploy/examples`, in the light scheme.

`scripts/web-pictures` runs it. Its argument is the folder of the pictures.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import FloatRect

from tests.support.browser import opened_page, running_browser
from tests.support.documentation import ROOT
from tests.support.embedded_process import EmbeddedProcess

PICTURES = {
    "web-topology": ("topology", ".lanes", 490),
    "web-network": ("networks/shop/blue", ".map", 520),
}
"""By name: the view, what it has once it is complete, and the height of the picture."""

WIDTH = 1000


def main() -> None:
    """Replaces all pictures."""
    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        node = EmbeddedProcess(Path(work), options=["--manifests", str(ROOT / "deploy" / "examples")])
        node.start()
        try:
            take(f"http://{node.listen}", folder)
        finally:
            node.kill()


def take(url: str, folder: Path) -> None:
    """Takes the pictures of the page at this address."""
    with running_browser() as browser:
        for name, (view, complete, height) in PICTURES.items():
            size = FloatRect(x=0, y=0, width=WIDTH, height=height)
            viewport = {"width": WIDTH, "height": height}
            with opened_page(browser, f"{url}/#/{view}", viewport=viewport, color_scheme="light") as page:
                page.wait_for_selector(f"body.live {complete}")
                unfinished = folder / f"{name}.unfinished.png"
                page.screenshot(path=unfinished, clip=size)
                shutil.move(unfinished, folder / f"{name}.png")


if __name__ == "__main__":
    main()
