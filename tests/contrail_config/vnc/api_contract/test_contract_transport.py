"""What every request meets: bodies, paths, methods, errors and headers."""

import pytest

from tests.support.contrail_callers import Caller, unique


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"project": {}}', b'{"virtual-machine": {}}'])
async def test_a_body_that_is_no_wrapped_object_is_an_internal_error(api: Caller, data: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await api.request("POST", "/virtual-machines", data=data, headers=headers)
    assert (answer.status, answer.text) == (500, "Internal Server Error")


async def test_a_body_of_another_content_type_is_an_internal_error(api: Caller) -> None:
    data = b'{"virtual-machine": {"fq_name": ["x"]}}'
    answer = await api.request("POST", "/virtual-machines", data=data, headers={"Content-Type": "text/plain"})
    assert answer.status == 500


async def test_a_body_above_the_limit_is_an_html_page_with_413(api: Caller) -> None:
    answer = await api.request(
        "POST", "/virtual-machines", data=b" " * 1_024_001, headers={"Content-Type": "application/json"}
    )
    assert answer.status == 413
    assert "<pre>" in answer.text


@pytest.mark.parametrize("path", ["/virtual-machines/", "/nosuchs"])
async def test_an_unknown_path_is_not_found(api: Caller, path: str) -> None:
    answer = await api.request("GET", path)
    assert (answer.status, answer.text) == (404, f"Not found: '{path}'")


async def test_a_wrong_method_is_not_allowed(api: Caller) -> None:
    answer = await api.request("PUT", "/virtual-machines", {"virtual-machine": {}})
    assert (answer.status, answer.text) == (405, "Method not allowed.")
    assert "POST" in answer.headers["Allow"]


@pytest.mark.parametrize("text", ["garbage", "0A000000-0000-4000-8000-000000000001"])
async def test_a_uuid_that_is_not_canonical_is_unknown(api: Caller, text: str) -> None:
    answer = await api.request("GET", f"/virtual-machine/{text}")
    assert (answer.status, answer.text) == (404, f"Unknown id: {text}")


async def test_a_delete_has_an_empty_body_of_type_html(api: Caller) -> None:
    machine = await api.virtual_machine()
    answer = await api.delete(machine)
    assert (answer.status, answer.text) == (200, "")
    assert answer.headers["Content-Type"].startswith("text/html")


async def test_an_update_with_an_empty_body_succeeds_also_for_an_unknown_uuid(api: Caller) -> None:
    answer = await api.request("PUT", "/virtual-machine/0a000000-0000-4000-8000-000000000001")
    assert (answer.status, answer.text) == (200, "")


async def test_an_object_has_its_last_modification_as_etag(api: Caller) -> None:
    machine = await api.virtual_machine()
    answer = await api.request("GET", machine.path)
    assert answer.headers["ETag"] == f'"{answer.json["virtual-machine"]["id_perms"]["last_modified"]}"'


async def test_an_unchanged_object_is_not_modified(api: Caller) -> None:
    machine = await api.virtual_machine()
    modified = (await api.read(machine))["id_perms"]["last_modified"]
    answer = await api.request("GET", machine.path, headers={"If-None-Match": modified})
    assert answer.status == 304


async def test_if_match_is_ignored(api: Caller) -> None:
    machine = await api.virtual_machine()
    body = {"virtual-machine": {"display_name": "changed"}}
    answer = await api.request("PUT", machine.path, body, headers={"If-Match": '"2000-01-01T00:00:00.000000"'})
    assert answer.status == 200
    assert (await api.read(machine))["display_name"] == "changed"


async def test_hrefs_carry_the_host_of_the_request_unless_excluded(api: Caller) -> None:
    machine = await api.virtual_machine()
    assert (await api.read(machine))["href"] == f"{api.url}{machine.path}"
    assert "href" not in await api.read(machine, exclude_hrefs="1")


async def test_the_home_page_names_collections_and_actions(api: Caller) -> None:
    links = [item["link"] for item in (await api.get("/"))["links"]]
    named = {(link["rel"], link["name"]) for link in links}
    assert {("collection", "virtual-machine"), ("action", "watch"), ("action", "ref-update")} <= named


async def test_an_unknown_key_is_dropped(api: Caller) -> None:
    machine = await api.create("virtual-machine", fq_name=[unique("vm")], nonsense=1, virtual_router_back_refs=[{}])
    shown = await api.read(machine)
    assert "nonsense" not in shown
    assert "virtual_router_back_refs" not in shown
