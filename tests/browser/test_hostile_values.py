"""What tenants write is only ever text: it runs nothing, loads nothing, and breaks no command that is copied."""

import shlex
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from tests.browser.conftest import ONE_BROWSER, Show, running_node, showing
from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write

pytestmark = ONE_BROWSER

MARKUP = "<img src=x onerror=window.broken=1>\"'`</script><script>window.broken=1</script>${window.broken=1}"
FILE = "<b>'$(id)'"
LONGEST = "a" * 253
"""A name as long as Kubernetes permits, without any place to break it."""
VIEWS = ("", "topology", "networks", "networks/demo/blue", "pods", "pods/demo/evil", "waiting", "nodes", "events")
WIDEST = "m" * 63, "m" * 19
"""Names of networks of the widest letters, one of them too short to be cut."""


@pytest.fixture(scope="module")
def hostile_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedProcess]:
    """The node, with manifests of somebody who wants to break the page."""
    with running_node(tmp_path_factory.mktemp("node")) as node:
        evil = pod("evil", networks=f"blue@{MARKUP}")
        gateway = pod("gateway", networks="blue", **{"opencontrail.org/default-gw": MARKUP})
        write(node.manifests / "hostile.yaml", nad("bad", cidr=MARKUP), evil, gateway)
        write(node.manifests / "longest.yaml", pod(LONGEST, networks="missing"))
        wide = [nad(name, cidr=f"10.9.{number}.0/24") for number, name in enumerate(WIDEST)]
        write(node.manifests / "widest.yaml", *wide, pod(WIDEST[0], networks=",".join(WIDEST)))
        (node.manifests / f"{FILE}.yaml").write_text("{")
        node.wait_until(lambda: len(node.items("pods")) == 9, what="following its manifests")
        node.wait_until(lambda: FILE in str(node.items("events")), what="reporting the file")
        yield node


@pytest.fixture
def show(browser: Browser, hostile_node: EmbeddedProcess) -> Iterator[Show]:
    with showing(browser, hostile_node) as show:
        yield show


@pytest.mark.parametrize("view", VIEWS)
def test_markup_in_annotations_and_file_names_is_shown_as_text(show: Show, view: str) -> None:
    page = show(view)
    page.wait_for_selector("main h2, main table, main svg", state="attached")
    assert page.evaluate("() => window.broken") is None
    assert page.locator("main img, main script, main b").count() == 0


def test_the_message_of_a_hostile_annotation_is_shown_literally(show: Show) -> None:
    page = show("pods/demo/evil")
    expect(page.locator(".facts")).to_contain_text("onerror=window.broken=1")


def test_the_longest_name_leaves_room_for_what_to_do(show: Show) -> None:
    page = show("waiting", viewport={"width": 1280, "height": 700})
    expect(page.locator("td:first-child", has_text=LONGEST)).to_have_count(1)
    cure = page.locator("th", has_text="What to do").bounding_box()
    assert cure is not None
    assert cure["x"] + cure["width"] <= 1280


def test_the_widest_names_of_networks_begin_inside_the_picture(show: Show) -> None:
    labels = show("topology").locator(".lane text")
    expect(labels.filter(has_text="mmm")).to_have_count(2)
    assert all(left >= 0 for left in labels.evaluate_all("all => all.map((each) => each.getBBox().x)"))


def test_the_widest_names_of_pods_are_whole_inside_the_picture(show: Show) -> None:
    page = show("topology")
    expect(page.locator(".column text").filter(has_text="mmm")).to_have_count(1)
    picture = page.locator("svg.lanes").bounding_box()
    assert picture is not None
    for label in page.locator(".column text").all():
        box = label.bounding_box()
        assert box is not None
        assert box["y"] >= picture["y"]
        assert box["x"] + box["width"] <= picture["x"] + picture["width"]


def test_the_longest_name_leaves_room_for_messages_of_events(show: Show) -> None:
    page = show("events", viewport={"width": 1280, "height": 700})
    expect(page.locator("td", has_text=LONGEST).first).to_be_visible()
    message = page.locator("th", has_text="Message").bounding_box()
    assert message is not None
    assert message["x"] + message["width"] <= 1280


@pytest.mark.parametrize("reported", ["yesterday", "", "+999999-01-01T00:00:00Z"])
def test_a_report_without_a_readable_time_leaves_the_nodes_shown(show: Show, reported: str) -> None:
    page = show("nodes")
    page.add_init_script(
        f"""const parse = JSON.parse;
        JSON.parse = (text) => {{
          const message = parse(text);
          if (message.kind === "nodes") message.object.report.reportedAt = {reported!r};
          return message;
        }};"""
    )
    page.reload()
    expect(page.get_by_role("region", name="Table of nodes").locator("tbody tr")).to_contain_text("unknown")


@pytest.mark.parametrize(
    "name",
    [
        "<img src=x onerror=window.broken=1>",
        "a'b;$(touch x)`id`",
        "../../v1/pods",
        "__proto__",
        "%00%ff",
        "javascript:alert(1)",
    ],
)
def test_an_address_of_a_view_is_text_too(show_still: Show, name: str) -> None:
    page = show_still(f"pods/demo/{encoded(name)}?q={encoded(name)}&network={encoded(name)}&rows={encoded(name)}")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Pod demo/{name}")
    expect(page.get_by_role("alert")).to_contain_text("There is no pod")
    assert page.evaluate("() => window.broken") is None


@pytest.mark.parametrize("character", ["\x03", "\n", "\x1b", "\x85", "\u202e"])
def test_an_address_with_control_characters_has_no_command(show_still: Show, character: str) -> None:
    page = show_still(f"pods?namespace={encoded(character + 'touch /tmp/x')}")
    assert [text for text in commands(page) if "touch" in text or character in text] == []


def test_a_copied_command_is_one_command(show_still: Show) -> None:
    page = show_still(f"pods?namespace={encoded(chr(39) + '; touch /tmp/x #')}")
    for text in commands(page):
        assert "touch /tmp/x" not in shlex.split(text, comments=True)
        assert [word for word in shlex.split(text) if "touch" in word] == ["'; touch /tmp/x #"]


def test_text_cannot_become_markup_even_by_a_mistake_in_the_page(show_still: Show) -> None:
    page = show_still(tolerated="requires 'Trusted")
    attempts = {
        "innerHTML": "(element) => { element.innerHTML = '<b>x</b>'; }",
        "onclick": "(element) => { element.setAttribute('onclick', 'window.broken = 1'); element.click(); }",
    }
    for name, attempt in attempts.items():
        with pytest.raises(Error, match="requires 'Trusted"):
            page.locator("main").evaluate(attempt)
        assert page.locator("main > b").count() == 0, name
    assert page.evaluate("() => window.broken") is None


def commands(page: Page) -> list[str]:
    return page.locator(".commands code").all_text_contents()


def encoded(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def test_a_file_with_a_hostile_name_is_listed(show: Show) -> None:
    expect(show("events").locator("tbody")).to_contain_text(f"{FILE}.yaml")
