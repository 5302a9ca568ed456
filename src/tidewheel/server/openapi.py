"""The OpenAPI document, made from the table of endpoints."""

import ast
import http
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, get_args, get_type_hints

import msgspec

from tidewheel.model.access import MAY, Role
from tidewheel.model.problem import CODES, Code
from tidewheel.server.endpoint import Endpoint, RequestHeader
from tidewheel.server.problems import MEDIA_TYPE, Problem
from tidewheel.server.reading import JSON

Json = dict[str, Any]
_REF: Final = "#/components/schemas/{name}"
_VARIABLE: Final = re.compile(r"\{(\w+)(?::\w+)?\}")
_KEY: Final[Json] = {
    "type": "http",
    "scheme": "bearer",
    "description": "`Authorization: Bearer tide_…`: a key from `tide key create` or `POST /v1/keys`. A server that "
    "only its own machine reaches asks for none before the first key is made.",
}
_HEADERS: Final[Json] = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}


def openapi_of(endpoints: Sequence[Endpoint]) -> Json:
    """Return the document."""
    schemas, components = _schemas(endpoints)
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        operations = paths.setdefault(plain_path(endpoint.path), {})
        operations[endpoint.method.lower()] = _operation(endpoint, schemas, components)
    queries = {endpoint.query.__name__ for endpoint in endpoints}
    shown = {name: schema for name, schema in components.items() if name not in queries or _is_used(name, components)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tidewheel",
            "version": version("tidewheel"),
            "summary": "Run jobs on time.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": group} for group in dict.fromkeys(endpoint.group for endpoint in endpoints)],
        "paths": paths,
        "components": {
            "schemas": shown,
            "headers": {"X-Request-Id": {"description": "Names the request in logs.", "schema": {"type": "string"}}},
            "securitySchemes": {"key": _KEY},
        },
    }


def plain_path(path: str) -> str:
    """Return a path without the converters of its variables."""
    return _VARIABLE.sub(r"{\1}", path)


def _schemas(endpoints: Iterable[Endpoint]) -> tuple[dict[int, Json], dict[str, Json]]:
    """Return the schema of each type by its identity, and the components that they refer to."""
    types: list[Any] = [Problem]
    for endpoint in endpoints:
        types += [endpoint.query, *_json_types(endpoint.answers)]
        types += [] if endpoint.body is None else [endpoint.body]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    for struct in _structs(types):
        for name, words in _words_of(struct).items():
            field = components.get(struct.__name__, {}).get("properties", {}).get(name)
            if field is not None and "$ref" not in field:
                field.setdefault("description", words)
    return {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}, components


def _structs(types: Iterable[Any]) -> set[type[msgspec.Struct]]:
    """Return all structs that types are made of, with those that they derive from."""
    found: set[type[msgspec.Struct]] = set()
    unseen = list(types)
    while unseen:
        kind = unseen.pop()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in found:
            found.add(kind)
            unseen += get_type_hints(kind).values()
        unseen += get_args(kind)
    return found


def _words_of(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return what the texts below the fields of a struct say."""
    words: dict[str, str] = {}
    for kind in reversed(
        [one for one in struct.__mro__ if issubclass(one, msgspec.Struct) and one is not msgspec.Struct]
    ):
        [body] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        assert isinstance(body, ast.ClassDef)
        for field, text in itertools.pairwise(body.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                words[field.target.id] = inspect.cleandoc(ast.literal_eval(text.value))
    return words


def _json_types(answers: Mapping[int, Any]) -> list[Any]:
    return [kind for kind in answers.values() if kind is not None and not isinstance(kind, str)]


def _operation(endpoint: Endpoint, schemas: Mapping[int, Json], components: Mapping[str, Json]) -> Json:
    operation: Json = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.group],
        "parameters": _parameters(endpoint, components),
        "responses": {**_answers(endpoint, schemas), **_problems(endpoint)},
        "security": [] if endpoint.action is None else [{}, {"key": []}],
    }
    if endpoint.description:
        operation["description"] = endpoint.description
    if endpoint.action is not None:
        operation["x-action"] = endpoint.action.value
        operation["x-all-tenants"] = endpoint.everywhere
        operation["x-roles"] = [role.value for role in Role if endpoint.action in MAY[role]]
    if endpoint.body is not None:
        content = {media: _content(media, schemas[id(endpoint.body)]) for media in endpoint.media_types}
        operation["requestBody"] = {"required": not endpoint.body_optional, "content": content}
    return operation


def _content(media: str, schema: Json) -> Json:
    return {"schema": schema if media == JSON else {"type": "string"}}


def _parameters(endpoint: Endpoint, components: Mapping[str, Json]) -> list[Json]:
    found: list[Json] = []
    for name in _VARIABLE.findall(endpoint.path):
        schema: Json = {"type": "string", "format": "uuid"} if name == "id" else {"type": "string", "minLength": 1}
        found.append({"name": name, "in": "path", "required": True, "schema": schema})
    query = components[endpoint.query.__name__]
    for name, schema in query["properties"].items():
        found.append({"name": name, "in": "query", "required": name in query["required"], **_parameter(schema)})
    common = () if endpoint.action is None else (RequestHeader.TENANT,)
    for header in (*endpoint.headers, *common):
        name, description = header.value
        found.append({"name": name, "in": "header", "description": description, "schema": {"type": "string"}})
    return found


def _parameter(schema: Json) -> Json:
    """Return a parameter by its schema: one that is not given is not null, but not there."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    plain = {name: value for name, value in schema.items() if name not in ("anyOf", "description")}
    if plain.get("default", ...) is None:
        del plain["default"]
    if len(choices) == 1:
        plain |= choices[0]
    description = plain.pop("description", None) or schema.get("description")
    return {"schema": plain, **({"description": description} if description else {})}


def _answers(endpoint: Endpoint, schemas: Mapping[int, Json]) -> Json:
    found: Json = {}
    for status, kind in endpoint.answers.items():
        answer: Json = {"description": http.HTTPStatus(status).phrase, "headers": _HEADERS}
        if isinstance(kind, str):
            answer["content"] = {kind.partition(";")[0]: {"schema": {"type": "string"}}}
        elif kind is not None:
            answer["content"] = {JSON: {"schema": schemas[id(kind)]}}
        found[str(status)] = answer
    return found


def _problems(endpoint: Endpoint) -> Json:
    by_status: dict[int, list[Code]] = {}
    for code in endpoint.codes:
        by_status.setdefault(CODES[code].status, []).append(code)
    return {
        str(status): {
            "description": "; ".join(f"`{code}`: {CODES[code].title}" for code in codes),
            "headers": _HEADERS,
            "content": {MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}},
        }
        for status, codes in sorted(by_status.items())
    }


def _is_used(name: str, components: Mapping[str, Json]) -> bool:
    """Tell whether a component is part of another one, too."""
    return _REF.format(name=name) in str(list(components.values()))
