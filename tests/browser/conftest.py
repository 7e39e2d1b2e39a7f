"""The web page in a real browser: an embedded node as operators start it, and Debian's chromium."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import DEADLINE, opened_page, running_browser
from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write

Show = Callable[..., Page]


ONE_BROWSER = pytest.mark.xdist_group("browser")
"""Mark of every module here: one worker runs all of them, so that few browsers and nodes are started."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a module; each has pages in contexts of its own.

    Not for longer: Playwright keeps an event loop running in this thread, in which tests of other folders run theirs.
    """
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def still_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedProcess]:
    """A node with two networks, a pod in both, one that waits, one that is refused, and one of the host's network.

    It is for all tests of a module, which change nothing.
    """
    with running_node(tmp_path_factory.mktemp("node")) as node:
        yield node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    """The same for one test, which may change what it has."""
    with running_node(tmp_path) as node:
        yield node


@contextlib.contextmanager
def running_node(work: Path) -> Iterator[EmbeddedProcess]:
    """Runs the node until the context is left."""
    node = EmbeddedProcess(work)
    write(node.manifests / "networks.yaml", nad("blue", cidr="10.1.0.0/24"), nad("green", cidr="fd00:2::/64"))
    host = pod("host")
    host["spec"]["hostNetwork"] = True
    pods = [pod("web", networks="blue,green"), pod("plain"), pod("waits", networks="late"), host]
    write(node.manifests / "pods.yaml", *pods, pod("refused", networks="blue@not a name"))
    node.start()
    node.wait_until(lambda: bool(node.items("nodes")), what="reporting")
    try:
        yield node
    finally:
        node.kill()


def answer_as_manager_of(page: Page, store: str) -> None:
    """Answers the page's question for the kind of the manager's store."""
    summary = {"networks": 0, "interfaces": 0, "pods": {}, "store": store}
    page.route("**/v1/summary", lambda route: route.fulfill(json=summary))


@pytest.fixture
def show(browser: Browser, node: EmbeddedProcess) -> Iterator[Show]:
    """Opens a view of the node's page, such as `pods?state=Ready`, and returns once it is live."""
    with showing(browser, node) as show:
        yield show


@pytest.fixture
def show_still(browser: Browser, still_node: EmbeddedProcess) -> Iterator[Show]:
    """The same of the node that no test changes."""
    with showing(browser, still_node) as show:
        yield show


@contextlib.contextmanager
def showing(browser: Browser, node: EmbeddedProcess) -> Iterator[Show]:
    """Yields what opens views until the context is left."""
    with contextlib.ExitStack() as stack:

        def show_view(view: str = "", *, tolerated: str = "(?!)", **options: Any) -> Page:
            address = f"http://{node.listen}/#/{view}"
            expected = rf"404 .*/trace$|{tolerated}"  # a single machine has no time line
            page = stack.enter_context(opened_page(browser, address, tolerated=expected, **options))
            expect(page.locator("#status")).to_have_text("Live", timeout=DEADLINE)  # connected, and all is known
            return page

        yield show_view
