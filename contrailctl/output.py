"""What a command answers, in the form that was asked for."""

from typing import Any, NamedTuple

import msgspec
import yaml

FORMATS = ("table", "json", "yaml")


class Output(NamedTuple):
    """`text` for people, `document` (what msgspec can encode) for programs, and the exit status."""

    text: str
    document: Any
    status: int = 0


def render(answer: Output, output: str) -> str:
    """Returns the answer in one of FORMATS, without a line end."""
    if output == "table":
        return answer.text
    document = msgspec.to_builtins(answer.document)
    if output == "yaml":
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip()
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
