"""Colours: whole cells with states, on a terminal only, and never with NO_COLOR."""

import io
import os
import pty

import pytest

from contrailctl.colour import coloured, has_colours

TERMINAL = {"TERM": "xterm"}


def test_cells_with_states_have_colours_and_other_text_has_none() -> None:
    text = "NODE     AGENT      LAST ERROR\nReady    NotReady   Ready to fail\nnode-b   Ready"
    expected = (
        "NODE     AGENT      LAST ERROR\n"
        "\x1b[32mReady\x1b[0m    \x1b[31mNotReady\x1b[0m   Ready to fail\n"
        "node-b   \x1b[32mReady\x1b[0m"
    )
    assert coloured(text) == expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [(TERMINAL, True), ({**TERMINAL, "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_has_colours_unless_its_user_wants_none(environment: dict[str, str], expected: bool) -> None:
    user, descriptor = pty.openpty()
    with os.fdopen(user), os.fdopen(descriptor, "w") as terminal:
        assert has_colours(terminal, environment) is expected


def test_a_pipe_has_no_colours() -> None:
    assert not has_colours(io.StringIO(), TERMINAL)
