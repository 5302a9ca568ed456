"""What type checkers must know of an app. Each line marked as wrong must be an error for each of them, and no other."""

from typing import Any, assert_type

from tidewheel import App, Context, GroupJob, Job, chain, group

app = App()


@app.task
async def add(a: int, b: int = 2) -> int:
    return a + b


@app.task
def plain(name: str, *, loud: bool = False) -> list[str]:
    return [name.upper() if loud else name]


@app.task(queue="mail", retry=3, resources={"cpu": 1})
def send(ctx: Context, to: str) -> None:
    ctx.progress(1, to)


@app.task(name="fetch", timeout="5m")
async def fetch(ctx: Context, url: str) -> dict[str, str]:
    return {"url": url, "number": str(ctx.number)}


@app.task(cron="0 5 * * *", timezone="Europe/Berlin", overlap="skip", misfire="latest", grace="1h")
def nightly(day: str = "today") -> None: ...


def schedules() -> None:
    app.schedules.create(plain.s("x"), every="5m", overlap="queue", max_concurrency=2)
    app.schedules.create(nightly, every="5m", overlap="sometimes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(app.schedules.trigger("nightly"), Job[Any])


async def calls(ctx: Context) -> None:
    """Call each as the function that it was made of."""
    assert_type(await add(1), int)
    assert_type(plain("x", loud=True), list[str])
    send(ctx, "x")
    assert_type(await fetch(ctx, "x"), dict[str, str])
    plain(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    send("x")  # type: ignore[call-arg,arg-type]  # pyright: ignore[reportCallIssue]


async def enqueues() -> None:
    """Give what the function takes, without the context, and get what it returns."""
    assert_type(add.enqueue(1, b=3), Job[int])
    assert_type(await add.aenqueue(1), Job[int])
    assert_type(plain.enqueue("x", loud=True), Job[list[str]])
    assert_type(send.enqueue("x"), Job[None])
    assert_type(send.using(priority="high", delay="5m").enqueue("x"), Job[None])
    assert_type(await fetch.using(after=[add.enqueue(1)]).aenqueue("x"), Job[dict[str, str]])
    assert_type(add.enqueue(1).result(timeout=5), int)
    assert_type(await add.enqueue(1).aresult(), int)
    add.enqueue("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await add.aenqueue(1, c=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    send.using(delay=5).enqueue(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    send.using(priority="urgent")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    send.using(eta=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def flows() -> None:
    """A chain is worth its last member."""
    assert_type(chain(add.s(1), plain.s()).enqueue(), Job[list[str]])
    assert_type(group(add.s(1), add.s(2)).enqueue(), GroupJob[int])
    assert_type(chain(plain.s("x"), group(add.s(), add.s())).enqueue(), GroupJob[int])
    assert_type(chain(group(add.s(1), add.s(2)), plain.s()).enqueue().result(), list[str])
    assert_type(app.enqueue_many([add.s(1), plain.si("x")]), list[Job[Any]])
    add.si("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    chain(add)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


def others() -> None:
    """Transactions and jobs without a function."""
    assert_type(app.transaction(lambda tx: tx.enqueue(add, 1)), Job[int])
    app.command(["echo"], env={"A": "b"}, queue="q")
    app.http("GET", "http://example.com", headers={}, delay=5)
    app.transaction(lambda tx: tx.enqueue(add, "x"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.command(["echo"], shell=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    app.task(rate=5)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
