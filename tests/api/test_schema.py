"""Random requests made from the OpenAPI document find no answer that it does not mention, and none of the 500s.

Here those about jobs, and a few of each; all of the document are in `test_whole_schema.py`.
"""

import secrets
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    import schemathesis
    from hypothesis import HealthCheck, Phase, settings
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        negative_data_rejection,
        response_headers_conformance,
        response_schema_conformance,
        status_code_conformance,
        unsupported_method,
    )

from tests.api.test_processes import tide
from tidewheel.server.openapi import openapi_of
from tidewheel.server.table import ENDPOINTS

pytestmark = pytest.mark.filterwarnings("ignore")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
SCHEMA = schemathesis.openapi.from_dict(openapi_of(ENDPOINTS)).exclude(path="/v1/hints")  # which has no end
FOLLOWED = "/v1/logs/tail"
"""This has none either, but answers at once; it is read until the time is up."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder: Path = tmp_path_factory.mktemp("schema")
    database = "sqlite:///jobs.db"
    if request.param == "postgres":
        shared = request.getfixturevalue("postgres_server")
        name = f"tide_schema_{secrets.token_hex(4)}"  # others of this run may use the same server
        shared.execute(f"CREATE DATABASE {name} TEMPLATE {shared.template}")
        database = shared.database_url(name)
    with tide(folder, "server", "server", "--port", "0", "--no-keeper", "--database", database) as (_, client):
        yield client


def tries(number: int) -> settings:
    return settings(
        max_examples=number,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )


@pytest.mark.slow
@SCHEMA.include(path="/v1/jobs").parametrize()
@tries(3)
def test_the_answers_about_jobs_are_some_that_the_document_mentions(
    case: "schemathesis.Case[Any]", server: httpx.Client
) -> None:
    check(case, server)


def check(case: "schemathesis.Case[Any]", server: httpx.Client) -> None:
    if case.headers and "Prefer" in case.headers:
        case.headers["Prefer"] = "wait=0"
    case.call_and_validate(base_url=str(server.base_url), checks=CHECKS, timeout=5 if case.path == FOLLOWED else 30)
