"""A manager that requires a token: the page asks for it and sends it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import ONE_BROWSER
from tests.support.browser import opened_page
from tests.support.embedded_process import EmbeddedProcess
from tests.support.guarded_node import TOKEN, running_guarded_node

pytestmark = ONE_BROWSER


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    with running_guarded_node(tmp_path) as node:
        yield node


def test_the_page_asks_for_the_token_and_forgets_it_with_the_tab(browser: Browser, guarded: EmbeddedProcess) -> None:
    with opened_page(browser, f"http://{guarded.listen}/#/pods", tolerated="401") as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("A token is required")
        expect(page.locator("body")).not_to_contain_text("demo/web")
        expect(page.get_by_role("alert")).to_have_count(0)
        for token in ("wrong", "\u20ac", "vér", TOKEN):
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Use it").click()
            if token != TOKEN:
                expect(page.get_by_role("alert")).to_have_text("The token is not valid.")
                expect(page.get_by_label("Token")).to_have_value("")
        expect(page.locator("tbody")).to_contain_text("demo/web")
        assert TOKEN not in page.url
        assert page.evaluate("() => document.cookie + JSON.stringify({...localStorage})") == "{}"
        page.reload()
        expect(page.locator("tbody")).to_contain_text("demo/web")
        second = page.context.new_page()
        second.goto(f"http://{guarded.listen}/#/pods")
        expect(second.get_by_role("heading", level=1)).to_have_text("A token is required")
