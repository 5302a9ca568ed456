"""The whole of the OpenAPI document, tried as `test_schema.py` tries a part of it."""

from typing import Any

import httpx
import pytest
import schemathesis

from tests.api.test_schema import SCHEMA, check, server, tries

__all__ = ["server"]
pytestmark = [pytest.mark.proof, pytest.mark.filterwarnings("ignore")]


@SCHEMA.parametrize()
@tries(6)
def test_every_answer_is_one_that_the_document_mentions(case: "schemathesis.Case[Any]", server: httpx.Client) -> None:
    check(case, server)
