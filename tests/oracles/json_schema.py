"""The keywords of JSON Schema that the schema of exported models uses, and no others."""

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
}
WORDS = {"description", "title", "$schema", "$id", "$defs"}


def errors(schema, value, root=None, where="document"):
    """Return what is wrong with a value, a line each."""
    root = schema if root is None else root
    checks = {
        "$ref": lambda s: errors(root["$defs"][s.split("/")[-1]], value, root, where),
        "type": lambda s: [] if _is(s, value) else [f"{where} is no {s}"],
        "const": lambda s: [] if value == s else [f"{where} is not {s!r}"],
        "enum": lambda s: [] if value in s else [f"{where} is none of {s}"],
        "minimum": lambda s: [] if value >= s else [f"{where} is below {s}"],
        "exclusiveMinimum": lambda s: [] if value > s else [f"{where} is not above {s}"],
        "minItems": lambda s: [] if len(value) >= s else [f"{where} is too short"],
        "maxItems": lambda s: [] if len(value) <= s else [f"{where} is too long"],
        "items": lambda s: [
            e for i, v in enumerate(value) for e in errors(s, v, root, f"{where}[{i}]")
        ],
        "properties": lambda s: [
            e for k, v in value.items() if k in s for e in errors(s[k], v, root, f"{where}.{k}")
        ],
        "required": lambda s: [f"{where} lacks {k}" for k in s if k not in value],
        "additionalProperties": lambda s: [
            f"{where} has {k}" for k in value if k not in schema["properties"]
        ],
        "anyOf": lambda s: [] if _fits(s, value, root) else [f"{where} fits none of anyOf"],
        "oneOf": lambda s: [] if _fits(s, value, root) == 1 else [f"{where} fits not one of oneOf"],
    }
    wrong = errors_of_type(schema, value, where)
    if wrong:
        return wrong
    return [e for word, s in schema.items() if word not in WORDS for e in checks[word](s)]


def errors_of_type(schema, value, where):
    known = schema.get("type")
    return [] if known is None or _is(known, value) else [f"{where} is no {known}"]


def _is(names, value):
    return any(TYPES[name](value) for name in ([names] if isinstance(names, str) else names))


def _fits(schemas, value, root):
    return sum(not errors(one, value, root) for one in schemas)
