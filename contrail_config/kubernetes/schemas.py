"""OpenAPI schemas of the kinds, derived from their structs, in the structural form that the API server wants.

Kubernetes, "CustomResourceDefinitions", section "Specifying a structural schema": no references, no tuples, `nullable`
instead of a union with null. Defaults are left out, since they stay with whoever reads. What is no part of the schema
is dropped by the server.
"""

from typing import Any

import msgspec

Schema = dict[str, Any]


def structural_schema(kind: type[Any]) -> Schema:
    """The schema of a struct. Raises ValueError for what cannot be told in this form."""
    schema, parts = msgspec.json.schema_components((kind,), ref_template="{name}")
    return _structural(schema[0], parts)


def _structural(schema: Schema, parts: dict[str, Schema]) -> Schema:
    match schema:
        case {"$ref": name}:
            return _structural(parts[name], parts)
        case {"anyOf": [one, {"type": "null"}]}:
            return {**_structural(one, parts), "nullable": True}
        case {"anyOf": _}:
            raise ValueError(f"no structural schema for {schema}")
        case {"enum": values}:
            return {"type": "string", "enum": values}
        case {"type": "object"}:
            return _object(schema, parts)
        case {"type": "array"}:
            return _array(schema, parts)
    return {key: value for key, value in schema.items() if key == "type"}


def _object(schema: Schema, parts: dict[str, Schema]) -> Schema:
    made: Schema = {"type": "object"}
    if "description" in schema:
        made["description"] = " ".join(schema["description"].split())
    if "properties" in schema:
        made["properties"] = {name: _structural(part, parts) for name, part in schema["properties"].items()}
    elif isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _structural(schema["additionalProperties"], parts)
    if schema.get("required"):
        made["required"] = list(schema["required"])
    return made


def _array(schema: Schema, parts: dict[str, Schema]) -> Schema:
    items = schema["prefixItems"][0] if "prefixItems" in schema else schema["items"]
    bounds: Schema = {key: schema[key] for key in ("minItems", "maxItems") if key in schema}
    return {"type": "array", "items": _structural(items, parts), **bounds}
