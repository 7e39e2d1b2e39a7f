"""The files of the web page over HTTP: headers, caching, and what they must not contain."""

import re

import pytest

from manager.web.files import SCRIPT, STYLES, PageFile, page_files
from manager.web.routes import page_routes
from tests.manager.web.conftest import Serve

FILES = page_files()
SCRIPTS = [file for file in FILES if file.name.endswith(".js")]
MODULES = [file for file in SCRIPTS if file.name != SCRIPT]
IMPORT = re.compile(r'^(?:import|export) [^;]*?from "(\.{1,2}/[\w./]+)";$|^import "(\.[\w./]+)";$', re.MULTILINE)


async def test_the_page_has_a_policy_without_inline_code_and_cannot_be_framed(serve: Serve) -> None:
    response = await (await serve()).get("/")
    assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = dict(part.split(" ", 1) for part in response.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert {policy[each] for each in ("script-src", "style-src", "connect-src", "img-src")} == {"'self'"}
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in str(policy)
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"


async def test_every_file_has_the_same_headers_and_its_type(serve: Serve) -> None:
    client = await serve()
    types = {"css": "text/css", "js": "text/javascript", "json": "application/json", "svg": "image/svg+xml"}
    first = await client.get("/")
    for file in FILES:
        if file.name == "index.html":
            continue
        response = await client.get(f"/web/{file.name}")
        assert response.status == 200
        assert response.headers["Content-Type"] == f"{types[file.name.rpartition('.')[2]]}; charset=utf-8"
        assert response.headers["Content-Security-Policy"] == first.headers["Content-Security-Policy"]
        assert await response.read() == file.content


async def test_a_file_that_a_browser_has_is_not_sent_again(serve: Serve) -> None:
    client = await serve()
    first = await client.get("/web/app.js")
    assert first.headers["Cache-Control"] == "no-cache"
    tag = first.headers["Etag"]
    again = await client.get("/web/app.js", headers={"If-None-Match": f'"other", W/{tag}'})
    assert (again.status, await again.read(), again.headers["Etag"]) == (304, b"", tag)
    assert "Content-Security-Policy" in again.headers
    assert (await client.get("/web/app.js", headers={"If-None-Match": '"other"'})).status == 200
    assert (await client.get("/web/layout.css")).headers["Etag"] != tag


@pytest.mark.parametrize(
    "path", ["/web/", "/web/none.js", "/web/../routes.py", "/web/%2e%2e/routes.py", "/web/index.html"]
)
async def test_nothing_else_is_served(serve: Serve, path: str) -> None:
    assert (await (await serve()).get(path)).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_written(serve: Serve, method: str) -> None:
    assert (await (await serve()).request(method, "/")).status == 405


async def test_the_configuration_can_turn_the_page_off_and_keeps_the_api(serve: Serve) -> None:
    client = await serve(**{"web-page": False})
    assert [(await client.get(path)).status for path in ("/", "/web/app.js", "/v1/pods")] == [404, 404, 200]


def test_the_routes_only_read() -> None:
    assert {route.method for route in page_routes()} == {"GET"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_names_no_other_host(file: object) -> None:
    (content,) = [each.content.decode() for each in FILES if each is file]
    urls = set(re.findall(r"https?://[^\s\"'`]+", content))
    assert urls <= {"http://www.w3.org/2000/svg", "http://127.0.0.1:8083", "http://127.0.0.1:9091"}  # in commands


def test_the_page_has_no_inline_script_and_no_inline_style() -> None:
    (index,) = [file.content.decode() for file in FILES if file.name == "index.html"]
    assert re.findall(r"<script[^>]*>(?!</script>)", index) == []
    assert not re.search(r"<style|\sstyle=|\son\w+=", index)


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_a_script_makes_no_markup_of_text(file: object) -> None:
    (content,) = [each.content.decode() for each in SCRIPTS if each is file]
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc"
    assert not re.search(forbidden, content)


def test_every_module_is_imported_by_the_page_and_every_import_exists() -> None:
    by_name = {file.name: file.content.decode() for file in MODULES}
    found, remaining = {"app.js"}, ["app.js"]
    while remaining:
        name = remaining.pop()
        for match in IMPORT.finditer(by_name[name]):
            target = resolved(name, match[1] or match[2])
            assert target in by_name, f"{name} imports {target}"
            if target not in found:
                found.add(target)
                remaining.append(target)
    assert found == set(by_name)


def test_a_browser_requests_one_script_and_one_style_sheet_that_have_everything() -> None:
    content = {file.name: file.content.decode() for file in FILES if file.name.endswith((".html", ".js", ".css"))}
    links = re.findall(r'(?:src|href)="web/([^"]+\.(?:js|css))"', content["index.html"])
    assert sorted(links) == [STYLES, SCRIPT]
    assert sorted(re.findall(r"^const \$\w+ = \(\(\) => { // (.+)$", content[SCRIPT], re.MULTILINE)) == sorted(
        file.name for file in MODULES
    )
    sheets = [text for name, text in content.items() if name.endswith(".css") and name != STYLES]
    assert all(text in content[STYLES] for text in sheets)
    assert len(content[STYLES]) < sum(map(len, sheets)) + 10


def resolved(name: str, target: str) -> str:
    folder = name.rpartition("/")[0].split("/") if "/" in name else []
    for part in target.split("/"):
        if part == "..":
            folder.pop()
        elif part != ".":
            folder.append(part)
    return "/".join(folder)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_has_no_line_over_120_characters(file: PageFile) -> None:
    too_long = [line for line in file.content.decode().splitlines() if len(line) > 120]
    assert too_long == [] or file.content_type in ("application/json", "image/svg+xml")
