"""Parsing of netlink attributes: all of them, or the first of some types."""

from hypothesis import given
from hypothesis import strategies as some

from cni_contrail.link.message import attribute, attributes, first_attributes

kinds = some.integers(1, 12)
sequences = some.dictionaries(kinds, some.binary(max_size=20), max_size=8)


@given(sequences)
def test_what_is_encoded_is_parsed(values: dict[int, bytes]) -> None:
    data = b"".join(attribute(kind, value) for kind, value in values.items())
    assert attributes(data) == values


@given(sequences, some.frozensets(kinds), some.integers(0, 8), some.binary(max_size=12))
def test_the_first_attributes_are_those_that_come_first(
    values: dict[int, bytes], wanted: frozenset[int], number: int, header: bytes
) -> None:
    data = header + b"".join(attribute(kind, value) for kind, value in values.items())
    expected = [(kind, value) for kind, value in values.items() if kind in wanted][:number]
    assert list(first_attributes(data, len(header), wanted, number).items()) == expected


@given(some.binary(max_size=64))
def test_any_bytes_are_parsed_to_their_end(data: bytes) -> None:
    everything = attributes(data)
    assert first_attributes(data, 0, range(1 << 16), 1 << 16).keys() <= everything.keys() | range(1 << 15, 1 << 16)
