"""Answers of the server: each documented one has its error."""

import pytest

from contrail_config.vnc.answers import answer_error
from contrail_config.vnc.errors import (
    MAX_MESSAGE_LENGTH,
    VncAddressTakenError,
    VncError,
    VncExhaustedError,
    VncExistsError,
    VncForbiddenError,
    VncInUseError,
    VncNotFoundError,
    VncOverloadedError,
    VncRejectedError,
    VncServerError,
    VncUnauthorizedError,
    VncUnavailableError,
)

U = "0a000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (400, f"Invalid UUID format: {U}", VncRejectedError),
        (400, "Bad Request, no fq_name in POST body", VncRejectedError),
        (400, "Overlapping addresses: ['10.8.0.0/24', '10.8.0.0/25']", VncRejectedError),
        (400, "Parent [u'nodomain'] type domain does not exist", VncNotFoundError),
        (400, "Unknown reference in resource create {u'to': [u'a']}", VncNotFoundError),
        (400, "Cannot set VXLAN_ID: 6001, it has already been set", VncExistsError),
        (400, "Virtual-Network(['d', 'p', 'n']) has exhausted subnet(['10.9.0.0/24'])", VncExhaustedError),
        (400, "Virtual-Network(['d', 'p', 'n']) has no defined subnets", VncExhaustedError),
        (400, f"Virtual-Network(['d', 'p', 'n']) has invalid subnet({U})", VncRejectedError),
        (400, "Gateway IP cannot be used by VM port", VncAddressTakenError),
        (
            400,
            f"FQ Name: c/api-server/subnets/d:p:n:10.8.0.0/24/0168296453 exists already with ID: {U} at zookeeper",
            VncAddressTakenError,
        ),
        (401, "<html><pre>Authentication required</pre></html>", VncUnauthorizedError),
        (403, "Permission Denied for ['member'] as ... to create ...", VncForbiddenError),
        (404, f"Unknown id: {U}", VncNotFoundError),
        (405, "Method not allowed.", VncRejectedError),
        (409, "IP address already in use", VncAddressTakenError),
        (409, "[u'k8s__shop__p1'] already exists with uuid: " + U, VncExistsError),
        (409, f"{U} already exists with fq_name: ['ann']", VncExistsError),
        (409, f"FQ Name: c/fq-name-to-uuid/virtual_machine:b exists already with ID: {U} at zookeeper", VncExistsError),
        (409, "Delete when resource still referred: ['http://h/a']", VncInUseError),
        (409, "Delete when children still present: ['http://h/a']", VncInUseError),
        (409, "Cannot Delete IP Block, IP(10.10.0.3) is in use", VncInUseError),
        (409, "gateway Ip 10.9.0.1 out of cidr: 10.8.0.0/24", VncRejectedError),
        (412, "<html><pre>quota limit (10) exceeded for resource instance_ip</pre></html>", VncRejectedError),
        (413, "<html><pre>Request entity too large</pre></html>", VncRejectedError),
        (429, "", VncOverloadedError),
        (500, "Internal Server Error", VncServerError),
        (500, f"vnc_api.exceptions.NoIdError: Unknown id: {U}", VncServerError),
        (500, "Too many pending updates to RabbitMQ: 4097", VncOverloadedError),
        (500, "Virtual-Network(d:p:n:10.8.0.0/31) has invalid alloc_unit(1) in subnet(10.8.0.0/31)", VncRejectedError),
        (500, "Virtual-Network(d:p:n:10.8.0.0/24) has invalid subnet(10.8.0.0/24)", VncRejectedError),
        (502, "<html>Bad Gateway</html>", VncUnavailableError),
        (503, "No connection to zookeeper.", VncOverloadedError),
        (503, "Api server is Initializing:DB Resync in progress", VncOverloadedError),
        (504, "", VncUnavailableError),
        (507, "", VncUnavailableError),
        (302, "", VncRejectedError),
    ],
)
def test_an_answer_has_its_error(status: int, text: str, kind: type[VncError]) -> None:
    error = answer_error("POST /things", status, text, {})
    assert type(error) is kind
    assert error.status == status
    assert str(error).startswith(f"POST /things: {status}")


def test_the_text_of_an_html_page_is_shown_alone() -> None:
    error = answer_error("GET /x", 413, "<html><title>x</title><pre>too &lt;large&gt;</pre></html>", {})
    assert str(error) == "GET /x: 413 too <large>"


def test_a_long_text_is_cut() -> None:
    assert len(str(answer_error("GET /x", 500, "x" * 10_000, {}))) == MAX_MESSAGE_LENGTH + len("...")


@pytest.mark.parametrize(("header", "seconds"), [("3", 3.0), ("soon", 0.0), ("", 0.0)])
def test_the_pause_that_the_server_asks_for_is_kept(header: str, seconds: float) -> None:
    assert answer_error("GET /x", 429, "", {"Retry-After": header}).retry_after == seconds
