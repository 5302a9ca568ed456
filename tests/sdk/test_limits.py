"""Limits that tasks declare, the keys that their jobs get, and what operators may set at run time."""

import asyncio
from datetime import date
from typing import Any

import pytest

from tests.contract.steps import everything
from tests.sdk.work import end_all
from tidewheel import App, Cap, Concurrency, Invalid, NotFound, QueueFull, Rate, State, Transaction
from tidewheel.model.cap import QueueCap
from tidewheel.model.job import JobSpec
from tidewheel.model.limit import Limit, LimitRule
from tidewheel.model.rate import Pace, parse_pace
from tidewheel.sdk.limiting import limit_keys_of
from tidewheel.store.base import Store
from tidewheel.tasks.limiting import task_limits


def test_the_rules_of_a_task_are_known_with_its_first_job_and_hold_for_every_tenant(app: App) -> None:
    @app.task(concurrency=2, rate="10/s", name="few")
    def few() -> None: ...

    assert few.enqueue().info().limit_keys == ("task:few", "rate:few")
    few.using(tenant="acme").enqueue()
    assert app.limits.rules() == [LimitRule("rate:few", rate=Pace(10, 1, 10)), LimitRule("task:few", 2)]


def test_keys_are_filled_in_from_the_fields_of_the_job(app: App) -> None:
    @app.task(
        name="send",
        rate=Rate("100/m", burst=20, key="{args.user_id}"),
        concurrency=Concurrency(2, key="{args.account.id}:{tenant}:{queue}:{kind}:{label.team}"),
    )
    def send(user_id: int, account: dict[str, Any]) -> None: ...

    job = send.using(labels={"team": "core"}, queue="mail", tenant="acme").enqueue(7, {"id": "a1"})
    assert job.info().limit_keys == ("task:send=a1:acme:mail:send:core", "rate:send=7")


def test_the_schedule_of_a_job_can_be_its_key() -> None:
    (limit,) = task_limits("k", Concurrency(1, key="{schedule}"), None, ())
    assert limit_keys_of([limit], JobSpec(kind="k"), {}) == ("task:k=",)
    assert limit_keys_of([limit], JobSpec(kind="k"), {}, "nightly") == ("task:k=nightly",)


def test_arguments_that_were_left_out_count_with_their_defaults_and_typed_ones_as_they_are_stored(app: App) -> None:
    @app.task(name="d", rate=Rate("1/s", key="{args.day}/{args.flag}/{args.n}"))
    def day_of(day: date, n: int = 5, *, flag: bool = True) -> None: ...

    assert day_of.enqueue(date(2030, 1, 2)).info().limit_keys == ("rate:d=2030-01-02/true/5",)


def test_a_value_that_is_too_long_or_cannot_stand_in_a_key_goes_in_as_a_digest(app: App) -> None:
    @app.task(name="t", concurrency=Concurrency(1, key="{args.text}"))
    def task(text: str) -> None: ...

    texts = ["x" * 5000, "x" * 5001, "two\nlines", "blank ", "nul\u200d"]
    keys = [task.enqueue(text).info().limit_keys[0] for text in texts]
    assert len(set(keys)) == len(texts)
    assert all(len(key) <= 200 for key in keys)
    assert task.enqueue("x" * 5000).info().limit_keys[0] == keys[0]


def test_tasks_that_give_the_same_name_share_a_limit(app: App) -> None:
    api = Rate("10/s", name="api", key="{args.host}")

    @app.task(name="get", rate=api)
    def get(host: str) -> None: ...

    @app.task(name="put", rate=api, concurrency=Concurrency(3, name="uploads"))
    def put(host: str) -> None: ...

    assert get.enqueue("a").info().limit_keys == ("api=a",)
    assert put.enqueue("a").info().limit_keys == ("uploads", "api=a")
    with pytest.raises(Invalid, match="differently"):
        app.task(name="post", rate=Rate("11/s", name="api"))(lambda: None)


def test_concurrency_and_rate_with_one_name_are_one_limit(app: App) -> None:
    @app.task(name="t", concurrency=Concurrency(2, name="api"), rate=Rate("5/s", name="api"))
    def task() -> None: ...

    assert task.enqueue().info().limit_keys == ("api",)
    assert app.limits.rules() == [LimitRule("api", 2, Pace(5, 1, 5))]


@pytest.mark.parametrize(
    ("options", "field", "why"),
    [
        ({"concurrency": 0}, "concurrency", "at least 1"),
        ({"concurrency": True}, "concurrency", "whole number"),
        ({"concurrency": Concurrency(-1)}, "concurrency", "at least 1"),
        ({"rate": "10/fortnight"}, "rate", "10/fortnight"),
        ({"rate": "0/s"}, "rate", "at least 1"),
        ({"rate": 5}, "rate", "text"),
        ({"rate": Rate("5/s", burst=0)}, "burst", "between 1"),
        ({"rate": Rate("5/s", key="{args.nobody}")}, "rate", "argument 'nobody'.*user"),
        ({"rate": Rate("5/s", key="{user}")}, "rate", "args.<name>"),
        ({"rate": Rate("5/s", key="{args}")}, "rate", "args.<name>"),
        ({"rate": Rate("5/s", key="{args.user!r}")}, "rate", "without a format"),
        ({"rate": Rate("5/s", key="{args.user:>{width}}")}, "rate", "without a format"),
        ({"rate": Rate("5/s", key="{args.user")}, "rate", "well formed"),
        ({"rate": Rate("5/s", key="{}")}, "rate", "args.<name>"),
        ({"rate": Rate("5/s", key="{args.user.}")}, "rate", "args.<name>"),
        ({"rate": Rate("5/s", key="{label.}")}, "rate", "args.<name>"),
        ({"rate": Rate("5/s", key="{label.a b}")}, "rate", "letters"),
        ({"rate": Rate("5/s", key="all")}, "rate", "names no field"),
        ({"rate": Rate("5/s", key="")}, "rate", "1 to 200"),
        ({"rate": Rate("5/s", key="x" * 190 + "{args.user}")}, "rate", "1 to 200"),
        ({"rate": Rate("5/s", name="a b")}, "rate", "name of the limit"),
        ({"cap": 0}, "cap", "between 1"),
        ({"cap": "5"}, "cap", "between 1"),
        ({"cap": Cap(5, overflow="forget")}, "cap", "overflow must be one of"),  # type: ignore[arg-type]
        ({"cap": Cap(5, key="{args.nobody}")}, "cap", "argument 'nobody'.*user"),
        ({"cap": Cap(5, name="a b")}, "cap", "name of the limit"),
        ({"rate": Rate("5/s", name="x" * 190)}, "rate", "at most"),
        (
            {"rate": Rate("5/s", name="n", key="{args.user}"), "concurrency": Concurrency(1, name="n")},
            "rate",
            "the same key",
        ),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_when_it_is_declared(
    app: App, options: dict[str, Any], field: str, why: str
) -> None:
    def task(user: int) -> None: ...

    with pytest.raises(Invalid, match=why) as caught:
        app.task(**{"name": "task", **options})(task)
    assert caught.value.field == field
    assert app.registry.get("task") is None


def test_a_key_never_reaches_into_objects(app: App) -> None:
    """A field is looked up among stored values by its name, and never as an attribute."""

    @app.task(name="t", concurrency=Concurrency(1, key="{args.a.__class__}"))
    def task(a: str) -> None: ...

    assert task.enqueue("x").info().limit_keys == ("task:t=",)


async def test_each_key_of_a_task_is_counted_for_itself(app: App) -> None:
    @app.task(name="one", concurrency=Concurrency(1, key="{args.account}"))
    def one(account: str) -> None: ...

    jobs = [await one.aenqueue(account) for account in ("a", "a", "b")]
    assert len(await end_all(app)) == 2
    assert [await job.astate() for job in jobs] == [State.SUCCEEDED, State.QUEUED, State.SUCCEEDED]


def test_operators_set_limits_at_run_time(app: App) -> None:
    limits = app.limits
    assert limits.set("api", 3) == Limit("default", "api", 3)
    assert limits.set("api", rate="10/m", burst=4) == Limit("default", "api", None, 0, Pace(10, 60, 4), 4)
    assert [limit.key for limit in limits.list()] == ["api"]
    assert limits.list(tenant="acme") == []
    limits.remove("api")
    with pytest.raises(NotFound):
        limits.remove("api")
    limits.set_rule("user", 1, rate="5/s")
    assert limits.rules() == [LimitRule("user", 1, Pace(5, 1, 5), by_hand=True)]
    limits.remove_rule("user")
    wrong: list[tuple[str, Any]] = [("most", 0), ("most", "3"), ("most", 1.5), ("most", 10**20)]
    for field, bad in (*wrong, ("rate", "5/x"), ("burst", 3)):
        with pytest.raises(Invalid) as refusal:
            limits.set("api", **{field: bad})
        assert refusal.value.field == field
    with pytest.raises(Invalid):
        limits.set("api")
    with pytest.raises(Invalid):
        limits.set("k" * 201, 1)


async def test_operators_cap_queues_on_both_faces(app: App) -> None:
    @app.task
    def task() -> None: ...

    await app.limits.aset_cap("default", 1, overflow="drop_oldest")
    jobs = [await task.aenqueue() for _ in range(2)]
    assert [await job.astate() for job in jobs] == [State.DROPPED, State.QUEUED]

    def plainly() -> None:
        app.limits.set_cap("default", 1)
        with pytest.raises(QueueFull, match="'default' is full"):
            task.enqueue()
        with pytest.raises(Invalid):
            app.limits.set_cap("default", 0)
        assert app.limits.caps() == [QueueCap("default", "default", 1)]
        app.limits.remove_cap("default")
        assert app.limits.caps() == []

    await asyncio.to_thread(plainly)
    await app.limits.aset_cap("q", 1, tenant="acme")
    assert len(await app.limits.acaps(tenant="acme")) == 1
    await app.limits.aremove_cap("q", tenant="acme")


async def test_a_task_says_how_many_of_its_jobs_may_wait_with_each_key(app: App) -> None:
    @app.task(name="sync", cap=Cap(1, key="{args.account}:{label.team}", overflow="drop_oldest"), rate="100/s")
    def sync(account: str) -> None: ...

    @app.task(name="few", cap=1)
    def few() -> None: ...

    jobs = [await sync.aenqueue(account) for account in ("a", "a", "b")]
    assert (await jobs[0].ainfo()).limit_keys == ("cap:sync=a:", "rate:sync")
    assert [await job.astate() for job in jobs] == [State.DROPPED, State.QUEUED, State.QUEUED]
    await few.aenqueue()
    with pytest.raises(QueueFull, match="key 'cap:few' is full"):
        await few.aenqueue()
    await app.limits.aset_key_cap("cap:few", 2)
    await few.aenqueue()
    with pytest.raises(QueueFull):
        await asyncio.to_thread(few.enqueue)
    await asyncio.to_thread(app.limits.set_key_cap, "cap:few", 3, overflow="replace")
    await few.aenqueue()
    with pytest.raises(Invalid, match="waiting"):
        await app.limits.aset_key_cap("cap:few", 0)
    caps = {rule.name: (rule.waiting, rule.overflow) for rule in await app.limits.arules() if rule.waiting}
    assert caps == {"cap:few": (3, "replace"), "cap:sync": (1, "drop_oldest")}


def test_tasks_that_share_the_name_of_a_cap_must_declare_it_alike(app: App) -> None:
    app.task(name="a", cap=Cap(5, name="shared"))(lambda: None)
    app.task(name="b", cap=Cap(5, name="shared"), concurrency=Concurrency(1, name="shared"))(lambda: None)
    with pytest.raises(Invalid, match="differently") as refusal:
        app.task(name="c", cap=Cap(6, name="shared"))(lambda: None)
    assert refusal.value.field == "cap"


def test_a_full_queue_does_not_undo_what_else_a_transaction_did(app: App) -> None:
    @app.task
    def task() -> None: ...

    app.limits.set_cap("default", 1)

    def work(tx: Transaction) -> int:
        tx.enqueue(task)
        with pytest.raises(QueueFull):
            tx.enqueue(task)
        return 1

    assert app.transaction(work) == 1
    assert len(app.run(app.use(everything))) == 1


async def test_the_async_face_does_the_same(app: App) -> None:
    limits = app.limits
    assert (await limits.aset("api", 3, tenant="acme")).tenant == "acme"
    assert [limit.key for limit in await limits.alist(tenant="acme")] == ["api"]
    await limits.aremove("api", tenant="acme")
    await limits.aset_rule("user", rate="5/s", burst=1)
    assert [rule.rate for rule in await limits.arules()] == [parse_pace("5/s", 1)]
    await limits.aremove_rule("user")
    assert await limits.arules() == []


async def test_what_an_operator_set_survives_the_next_start_of_an_app(url: str) -> None:
    for expected in (LimitRule("rate:mail", rate=Pace(10, 1, 10)), LimitRule("rate:mail", 1, by_hand=True)):
        app = App(url)

        @app.task(name="mail", rate="10/s")
        def mail() -> None: ...

        async with app:
            await mail.aenqueue()
            assert await app.limits.arules() == [expected]
            await app.limits.aset_rule("rate:mail", 1)
        await app.aclose()


def test_a_job_of_a_transaction_finds_the_rules_of_its_task(app: App) -> None:
    @app.task(name="t", concurrency=1)
    def task() -> None: ...

    app.transaction(lambda tx: tx.enqueue(task))
    assert app.limits.rules() == [LimitRule("task:t", 1)]


async def test_many_apps_that_start_at_once_declare_a_rule_once(url: str) -> None:
    async def start() -> None:
        async with App(url) as app:

            @app.task(name="mail", rate="10/s")
            def mail() -> None: ...

            await mail.aenqueue()

    await asyncio.gather(*(start() for _ in range(5)))

    async def rules(store: Store) -> list[LimitRule]:
        return await store.rules()

    async with App(url) as app:
        assert len(await app.use(rules)) == 1
