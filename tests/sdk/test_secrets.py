"""Secrets as arguments: what is stored is their names."""

import pytest

from tidewheel import App, Invalid, secret
from tidewheel.testing import in_memory

app = App()


@app.task
def charge(order: int, key: str, headers: dict[str, str] | None = None) -> str:
    return f"{order} {len(key)} {headers}"


@app.task
def count(number: int) -> int:
    return number


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDE_SECRET_STRIPE", "sk_live_1234")


def test_a_secret_fits_where_a_text_does_and_is_stored_by_name() -> None:
    with in_memory(app) as test:
        job = charge.enqueue(7, secret("stripe"), headers={"X-Key": secret("stripe"), "Y": "y"})
        assert job.info().args == {
            "order": 7,
            "key": {"$secret": "stripe"},
            "headers": {"X-Key": {"$secret": "stripe"}, "Y": "y"},
        }
        test.run_inline()
        assert job.result() == "7 12 {'X-Key': 'sk_live_1234', 'Y': 'y'}"


def test_a_secret_is_a_text_and_fits_nothing_else() -> None:
    with in_memory(app), pytest.raises(Invalid, match="number"):
        count.enqueue(secret("stripe"))


def test_a_missing_secret_ends_the_job_with_its_name() -> None:
    with in_memory(app) as test:
        charge.enqueue(7, secret("no_such"))
        (ran,) = test.run_inline()
        assert (ran.state, "'no_such'" in ran.error) == ("dead", True)


def test_commands_and_calls_take_secrets() -> None:
    with in_memory(app):
        command = app.command(["pg_dump", secret("dsn")], env={"PGPASSWORD": secret("db")}, stdin=secret("input"))
        assert command.info().args == {
            "argv": ["pg_dump", {"$secret": "dsn"}],
            "env": {"PGPASSWORD": {"$secret": "db"}},
            "stdin": {"$secret": "input"},
        }
        call = app.http("POST", "https://example.com/", headers={"Authorization": secret("token")}, body="x")
        assert call.info().args["headers"] == {"Authorization": {"$secret": "token"}}
        with pytest.raises(Invalid, match="json: cannot have secrets"):
            app.http("POST", "https://example.com/", json={"token": secret("token")})


def test_odd_names_are_refused_at_once() -> None:
    with pytest.raises(Invalid, match="small letters"):
        secret("No Such")
