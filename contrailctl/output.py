"""Output of a command in the requested format."""

from typing import Any, NamedTuple

import msgspec
import yaml

from contrailctl.table import printable

FORMATS = ("table", "json", "yaml")


class Output(NamedTuple):
    """`text` for people, `document` (encodable by msgspec) for programs, and the exit status."""

    text: str
    document: Any
    status: int = 0


def render(output: Output, output_format: str) -> str:
    """Returns the output in one of FORMATS, without a final newline; text without characters that steer a terminal."""
    if output_format == "table":
        return "\n".join(map(printable, output.text.split("\n")))
    document = msgspec.to_builtins(output.document)
    if output_format == "yaml":
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip()
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
