"""What the original CNI plugin makes of the agent's answers, so far as it matters: its parser of annotations.

It cuts the braces off, splits at every colon, pastes the first two parts into a JSON text and parses that. An
annotation without colon ends the plugin, one with a quote its call.
"""

import json


def read_annotations(annotations: list[str]) -> dict[str, str]:
    """Returns the annotations as the original plugin understands them, or raises as it fails."""
    pairs = [entry.rstrip("}").lstrip("{").split(":") for entry in annotations]
    text = ",".join(f'"{pair[0]}":"{pair[1]}"' for pair in pairs)
    read: dict[str, str] = json.loads(f"{{{text}}}")
    return read
