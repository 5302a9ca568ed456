"""What a process remembers of kinds that are noted."""

import pytest

from tidewheel.model import noted_kinds
from tidewheel.model.ids import make_id
from tidewheel.model.job_phrases import Said, said_of_kinds
from tidewheel.model.noted_kinds import NotedKinds


def test_jobs_of_one_kind_tenant_and_moment_say_the_same() -> None:
    ids = [make_id(n << 10, n) for n in (7, 7, 8)]
    jobs = [(tenant, job_id, "Mail.send") for tenant in (1, 2) for job_id in ids]
    assert said_of_kinds(jobs) == [Said(tenant, "mail.send", moment) for tenant in (1, 2) for moment in (7, 8)]


def test_what_was_noted_is_known_for_its_tenant_kind_and_moment_alone() -> None:
    kinds = NotedKinds()
    kinds.remember([Said(1, "mail", 7)])
    others = [Said(2, "mail", 7), Said(1, "post", 7), Said(1, "mail", 8), Said(1, "mail", 6)]
    assert kinds.unknown([Said(1, "mail", 7), *others]) == others
    kinds.forget()
    assert kinds.unknown([Said(1, "mail", 7)]) == [Said(1, "mail", 7)]


def test_it_remembers_no_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noted_kinds, "MOST_KINDS", 3)
    kinds = NotedKinds()
    said = [Said(1, str(n), 7) for n in range(4)]
    kinds.remember(said)
    assert kinds.unknown(said) == said[:3]
