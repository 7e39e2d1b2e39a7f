"""Values of annotations as manifests state them.

Kubernetes takes texts alone. The multi-network design's own examples write `['10.1.1.0/24']` and `False` as YAML has
them, so lists of texts, booleans and numbers count as their JSON text.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from manager.parsing.errors import BadValueError
from manager.parsing.quoting import quoted


def annotation_texts(annotations: Mapping[str, Any] | None) -> dict[str, str]:
    """The annotations as texts. Raises BadValueError, which names key and value."""
    return {key: _text(key, value) for key, value in (annotations or {}).items()}


def _text(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return json.dumps(value, ensure_ascii=False)
    raise BadValueError(f"metadata.annotations: {key}: {quoted(value)} is no text: put quotes around it")
