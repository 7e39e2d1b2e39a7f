"""Invalid `POST /vm`: one error that names the field, and no change."""

import io
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_api.errors import BadRequestError
from agent_api.ports.container import ContainerPort, parse_container_ports
from agent_api.request_bodies import MAX_BODY_SIZE
from tests.support.served_agent import ServedAgent, port_of
from tests.support.stored_ports import container_ports
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI

REQUIRED = ["vm-uuid", "vn-uuid", "vmi-uuid", "vm-name", "host-ifname"]
GOOD = port_of(SAMPLE_VM, SAMPLE_VMI)


def good(**other: Any) -> dict[str, Any]:
    return port_of(SAMPLE_VM, str(uuid.uuid4()), **other)


def without(key: str) -> dict[str, Any]:
    return {other: value for other, value in GOOD.items() if other != key}


NOT_A_UUID = "is not a valid uuid (lower case, with dashes, not nil)"

BAD_BODIES: list[tuple[object, str]] = [
    *((without(key), f"Object missing required field `{key}`") for key in REQUIRED),
    *((GOOD | {key: 7}, f"{key}: Expected `str`, got `int`") for key in REQUIRED),
    *((GOOD | {key: None}, f"{key}: Expected `str`, got `null`") for key in REQUIRED),
    *(
        (GOOD | {key: ["x"]}, f"{key}: Expected `str | null`, got `array`")
        for key in ("vm-id", "vm-ifname", "vm-namespace")
    ),
    *((GOOD | {key: "x-y"}, f"{key}: 'x-y' {NOT_A_UUID}") for key in REQUIRED[:3]),
    (GOOD | {"vm-uuid": ""}, f"vm-uuid: '' {NOT_A_UUID}"),
    (GOOD | {"vm-uuid": SAMPLE_VM.upper()}, f"vm-uuid: '{SAMPLE_VM.upper()}' {NOT_A_UUID}"),
    (GOOD | {"vmi-uuid": f"{SAMPLE_VMI}\n"}, f"vmi-uuid: '{SAMPLE_VMI}\\n' {NOT_A_UUID}"),
    (GOOD | {"vmi-uuid": str(uuid.UUID(int=0))}, f"vmi-uuid: '{uuid.UUID(int=0)}' {NOT_A_UUID}"),
    (GOOD | {"vmi-uuid": f"../{SAMPLE_VMI}"}, f"vmi-uuid: '../{SAMPLE_VMI}' {NOT_A_UUID}"),
    *(
        (GOOD | {"vm-name": name}, f"vm-name: {name[:80]!r} is not a valid virtual machine name")
        for name in ("", ".", "..", "/", "a/b", "../../etc", "/etc/passwd", "a\x00b", "a\nb", "n" * 4096, "é" * 257)
    ),
    *(
        (GOOD | {"host-ifname": name}, f"host-ifname: {name[:80]!r} is not a valid device name")
        for name in ("", ".", "..", "a/b", "tap 0", "tap:0", "tap\x00", "sixteen-letters!", "é" * 8)
    ),
    (GOOD | {"vm-id": "a\x00b"}, "vm-id: 'a\\x00b' is not a valid container id"),
    (GOOD | {"vm-namespace": "p" * 4097}, f"vm-namespace: '{'p' * 80}' is not a valid path"),
    ([], "body: array without ports"),
    ("text", "Expected `object | array`, got `str`"),
    (None, "Expected `object | array`, got `null`"),
    ([[GOOD]], "[0]: Expected `object`, got `array`"),
    ([good(), without("vm-name")], "[1]: Object missing required field `vm-name`"),
    ([good(), good(vmi_uuid=7)], "[1].vmi-uuid: Expected `str`, got `int`"),
    ([good(), good(), good(vn_uuid="?")], f"[2].vn-uuid: '?' {NOT_A_UUID}"),
    ([good(vmi_uuid=SAMPLE_VMI), good(vmi_uuid=SAMPLE_VMI)], f"[1].vmi-uuid: duplicate value {SAMPLE_VMI}"),
    (
        [good(), good(vm_name="k8s__default__p2")],
        "[1].vm-name: 'k8s__default__p2' differs from 'k8s__default__p1' of the same vm-uuid",
    ),
]


def files(folder: Path) -> list[Path]:
    return [path for path in (folder / "ports").rglob("*") if path.is_file()]


@pytest.mark.parametrize(("body", "error"), BAD_BODIES)
async def test_an_invalid_request_names_the_field_and_changes_nothing(
    served: ServedAgent, tmp_path: Path, body: object, error: str
) -> None:
    async with served.tcp.post("/vm", data=json.dumps(body)) as answer:
        assert (answer.status, await answer.json()) == (400, {"error": error})
    assert len(served.agent.ports) == 0
    assert files(tmp_path) == []


async def test_the_largest_body_is_accepted(served: ServedAgent) -> None:
    body = json.dumps(GOOD).encode()
    async with served.tcp.post("/vm", data=io.BytesIO(body.ljust(MAX_BODY_SIZE))) as answer:
        assert answer.status == 200


async def test_null_in_an_optional_key_is_taken_as_absent(served: ServedAgent) -> None:
    absent = dict.fromkeys(("vm-id", "vm-ifname", "vm-namespace"))
    async with served.tcp.post("/vm", json=GOOD | absent) as answer:
        assert answer.status == 200
    (port,) = container_ports(served.agent.ports)
    assert (port.vm_id, port.vm_ifname, port.vm_namespace) == ("", "", "")


async def test_unknown_and_missing_optional_keys_are_accepted(served: ServedAgent) -> None:
    body = {key: GOOD[key] for key in REQUIRED} | {"vhostuser-mode": 0, "time": [1], "author": None}
    async with served.tcp.post("/vm", json=body) as answer:
        assert answer.status == 200
    (port,) = container_ports(served.agent.ports)
    assert (port.vm_id, port.vm_ifname, port.vm_namespace, port.author) == ("", "", "", "contrail-agent")


def parsed(body: bytes) -> list[ContainerPort] | str:
    """Returns the ports or the error."""
    try:
        return parse_container_ports(body)
    except BadRequestError as error:
        return str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(list(GOOD)) | st.text(), inner, max_size=9)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_yields_ports_or_one_error(body: bytes) -> None:
    outcome = parsed(body)
    assert isinstance(outcome, str) or all(isinstance(port, ContainerPort) for port in outcome)


@given(st.sampled_from(list(GOOD)), st.text(max_size=20))
def test_any_text_is_stored_unchanged_or_rejected_with_the_field(key: str, text: str) -> None:
    outcome = parsed(json.dumps(GOOD | {key: text}).encode())
    if isinstance(outcome, str):
        assert outcome.startswith(f"{key}: ")
    else:
        assert key == "time" or getattr(outcome[0], key.replace("-", "_")) == text
