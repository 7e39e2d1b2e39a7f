"""Debian's chromium, driven by Playwright: one process for a session, a new context for each page."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
DEADLINE = 15_000.0
"""Milliseconds, for each thing that a test waits for."""

_OPTIONS = [
    "--no-sandbox",  # the tests run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-precise-memory-info",
]


@contextlib.contextmanager
def running_browser() -> Iterator[Browser]:
    """Runs a browser with a profile of its own until the context is left."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=_OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


def _errors(message: ConsoleMessage) -> list[str]:
    return [f"{message.text} {message.location['url']}"] if message.type == "error" else []


@contextlib.contextmanager
def opened_page(browser: Browser, url: str, *, tolerated: str = "(?!)", **options: Any) -> Iterator[Page]:
    """Opens the address in a context of its own; `options` are those of `Browser.new_context`.

    A script that fails, a policy that is violated or a file that is missing is an error when the page is closed, unless
    the pattern `tolerated` finds it.
    """
    problems: list[str] = []
    context = browser.new_context(**options)
    context.set_default_timeout(DEADLINE)
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error.stack)))
    page.on("console", lambda message: problems.extend(_errors(message)))
    try:
        page.goto(url)
        yield page
    finally:
        context.close()
    unexpected = [problem for problem in problems if not re.search(tolerated, problem)]
    assert not unexpected, unexpected
