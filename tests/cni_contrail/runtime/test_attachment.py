"""Invalid container IDs, interface names and arguments are rejected before any plugin is executed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.runtime.attachment import Attachment, AttachmentKey, parse_args, parse_key
from cni_contrail.runtime.calls import attachment_variables
from cni_contrail.runtime.errors import AttachmentError


@pytest.mark.parametrize("container_id", ["a", "A9", "cnitool-0f", "default-c1", "a.b_c-d", "c" * 64])
def test_container_ids_of_runtimes_are_accepted(container_id: str) -> None:
    assert Attachment(container_id, "/run/netns/x", "eth0").container_id == container_id


@pytest.mark.parametrize("container_id", ["", "-a", "_a", ".a", "a/b", "a:b", "a b", "a\n", "ä"])
def test_other_container_ids_are_rejected(container_id: str) -> None:
    with pytest.raises(AttachmentError, match=r"container ID .* must be letters"):
        Attachment(container_id, "/run/netns/x", "eth0")


@pytest.mark.parametrize("ifname", ["eth0", "a", "x" * 15, "net-1.2", "ü"])
def test_interface_names_valid_in_the_kernel_are_accepted(ifname: str) -> None:
    assert Attachment("c", "/run/netns/x", ifname).ifname == ifname


@pytest.mark.parametrize("ifname", ["", "x" * 16, "ü" * 8, ".", "..", "a/b", "a:b", "a b", "a\tb", "a\n"])
def test_interface_names_invalid_in_the_kernel_are_rejected(ifname: str) -> None:
    with pytest.raises(AttachmentError, match="interface name"):
        Attachment("c", "/run/netns/x", ifname)


class TestArguments:
    @pytest.mark.parametrize(
        ("text", "meant"),
        [
            ("", ()),
            ("A=1", (("A", "1"),)),
            ("A=1;B=", (("A", "1"), ("B", ""))),
            ("A=1;", (("A", "1"),)),
            ("IP=10.0.0.1,fd00::1;X=a=b", (("IP", "10.0.0.1,fd00::1"), ("X", "a=b"))),
            ("A=1;A=2", (("A", "1"), ("A", "2"))),
        ],
    )
    def test_an_argument_is_split_at_the_first_equals_sign(self, text: str, meant: tuple[tuple[str, str], ...]) -> None:
        assert parse_args(text) == meant

    @pytest.mark.parametrize("text", ["A", "A=1;B", "=1"])
    def test_an_argument_without_a_value_is_rejected(self, text: str) -> None:
        with pytest.raises(AttachmentError, match="must be KEY=VALUE"):
            parse_args(text)

    @pytest.mark.parametrize("pair", [("", "1"), ("A=B", "1"), ("A;B", "1"), ("A", "1;2")])
    def test_an_argument_that_would_parse_differently_is_rejected(self, pair: tuple[str, str]) -> None:
        with pytest.raises(AttachmentError, match="must be KEY=VALUE"):
            Attachment("c", "/run/netns/x", "eth0", args=(pair,))

    PLAIN = st.text(st.characters(exclude_characters="=;", codec="utf-8"), min_size=1)

    @given(st.lists(st.tuples(PLAIN, PLAIN)))
    def test_arguments_round_trip_through_cni_args(self, pairs: list[tuple[str, str]]) -> None:
        attachment = Attachment("c", "/run/netns/x", "eth0", args=tuple(pairs))
        assert parse_args(attachment_variables("ADD", attachment, [])["CNI_ARGS"]) == tuple(pairs)


class TestKeys:
    """Keys of attachments for GC."""

    def test_a_key_is_parsed_from_container_and_interface(self) -> None:
        assert parse_key("c1/eth0") == AttachmentKey("c1", "eth0") == Attachment("c1", "", "eth0").key

    def test_a_key_round_trips_as_text(self) -> None:
        assert str(parse_key("default-c1/net1")) == "default-c1/net1"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("c1", "attachment 'c1': must be CONTAINER/INTERFACE"),
            ("", "attachment '': must be CONTAINER/INTERFACE"),
            ("/eth0", "container ID ''"),
            ("c1/", "interface name ''"),
            ("c1/eth0/x", "interface name 'eth0/x'"),
        ],
    )
    def test_a_malformed_key_is_rejected(self, text: str, message: str) -> None:
        with pytest.raises(AttachmentError, match=message):
            parse_key(text)
