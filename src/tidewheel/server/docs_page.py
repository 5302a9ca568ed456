"""The docs for people: one page, made from the same document as everything else, without scripts or foreign parts."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final

from tidewheel.model.problem import CODES

Json = Mapping[str, Any]
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
code, .path { font-family: ui-monospace, monospace; font-size: .92em; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; padding: .3rem .8rem; }
summary { cursor: pointer; } .method { display: inline-block; width: 4.5rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .2rem .6rem .2rem 0;
vertical-align: top; border-bottom: 1px solid var(--soft); } .said { float: right; opacity: .7; }
"""


def docs_of(document: Json) -> str:
    """Return the page."""
    parts = [
        _operation(path, method, operation, document)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    schemas = [_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    codes = [
        f'<tr id="{code}"><td><code>{code}</code></td><td>{kind.status}</td><td>{_text(kind.title)}</td>'
        f"<td>{_text(kind.advice)}</td></tr>"
        for code, kind in CODES.items()
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Tidewheel API</title><style>{_STYLE}</style><h1>Tidewheel API</h1>"
        f"<p>Version {_text(document['info']['version'])}. For programs: <a href='/openapi.json'>openapi.json</a>.</p>"
        f"<h2>Endpoints</h2>{''.join(parts)}"
        "<h2>Problems</h2><p>Whatever goes wrong is answered with a problem document (RFC 9457); its "
        f"<code>code</code> is one of these.</p><table>{''.join(codes)}</table>"
        f"<h2>Documents</h2>{''.join(schemas)}</html>"
    )


def _operation(path: str, method: str, operation: Json, document: Json) -> str:
    del document
    parameters = [
        (f"{one['name']} ({one['in']})", _type(one["schema"]), one.get("description", ""))
        for one in operation["parameters"]
    ]
    body = [
        ("body", _type(content["schema"]), media)
        for media, content in operation.get("requestBody", {}).get("content", {}).items()
    ]
    answers = [
        (
            status,
            ", ".join(_type(content["schema"]) for content in answer.get("content", {}).values()),
            answer["description"],
        )
        for status, answer in operation["responses"].items()
    ]
    roles = " ".join(f"<code>{role}</code>" for role in operation.get("x-roles", ()))
    roles += " of all tenants" if operation.get("x-all-tenants") else ""
    return (
        f'<details id="{operation["operationId"]}"><summary><span class="method">{method.upper()}</span>'
        f'<span class="path">{_text(path)}</span><span class="said">{_text(operation["summary"])}</span></summary>'
        f"<p>{_text(operation.get('description', ''))}</p>"
        f"<p>{f'Open to: {roles}.' if roles else 'Open to all.'}</p>"
        f"{_rows(parameters + body)}<p>Answers:</p>{_rows(answers)}</details>"
    )


def _schema(name: str, schema: Json) -> str:
    required = schema.get("required", ())
    fields = [
        (field, _type(kind), ("required. " if field in required else "") + kind.get("description", ""))
        for field, kind in schema.get("properties", {}).items()
    ]
    return (
        f'<details id="{name}"><summary><code>{name}</code></summary>'
        f"<p>{_text(schema.get('description', ''))}</p>{_rows(fields)}</details>"
    )


def _rows(rows: Iterable[tuple[str, str, str]]) -> str:
    cells = [
        f"<tr><td><code>{_text(name)}</code></td><td>{kind}</td><td>{_text(words)}</td></tr>"
        for name, kind, words in rows
    ]
    return f"<table>{''.join(cells)}</table>" if cells else ""


def _type(schema: Json) -> str:
    """Return what a value may be, as HTML."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f"<code>{_text(str(value))}</code>" for value in schema["enum"])
    if "prefixItems" in schema:
        return f"list of {', '.join(_type(item) for item in schema['prefixItems'])}"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return _text(" ".join(filter(None, (schema.get("format"), schema.get("type", "any value")))))


def _text(text: str) -> str:
    return escape(text, quote=True)
