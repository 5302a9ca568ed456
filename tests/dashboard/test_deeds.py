"""What can be done from the pages, in a real browser."""

import re
from uuid import UUID

from playwright.sync_api import Page, expect

from tests.builders import a_claim, a_job, a_schedule, a_worker, outcome_of
from tests.dashboard.site import Site
from tidewheel.model.channel import ChannelSpec
from tidewheel.model.notification import Answer
from tidewheel.model.outcome import Failure
from tidewheel.model.states import Cause, State
from tidewheel.triggers.rules import Cron


def submit(site: Site, kind: str, **fields: object) -> UUID:
    [made] = site.run(site.store.submit([a_job(kind, **fields)]))
    return made.job_id


def fail(site: Site, kind: str, message: str) -> UUID:
    async def work() -> UUID:
        worker = await site.store.register(a_worker(queues=(kind,)))
        [made] = await site.store.submit([a_job(kind, queue=kind)])
        [run] = (await site.store.claim(a_claim(worker.id, 1, queues=(kind,)))).runs
        failure = Failure(reason="error", message=message)
        await site.store.settle(worker.id, [outcome_of(run, Cause.GAVE_UP, error=failure)])
        return made.job_id

    return site.run(work())


def state_of(site: Site, job: UUID) -> State:
    return site.run(site.store.get(job)).state


def test_a_job_is_cancelled_and_sent_round_again(page: Page, site: Site) -> None:
    job = submit(site, "one.job", queue="nobody")
    page.goto(f"/ui/jobs/{job}")

    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".flash")).to_have_text("The job is cancelled.")
    assert state_of(site, job) is State.CANCELLED
    page.get_by_role("button", name="Retry").click()
    expect(page.locator(".flash")).to_have_text("The job was sent round again.")
    assert state_of(site, job) is State.QUEUED


def test_all_jobs_that_match_are_cancelled_after_their_number_was_shown(page: Page, site: Site) -> None:
    jobs = [submit(site, "bulk.a", queue="bulk") for _ in range(3)]
    other = submit(site, "bulk.b", queue="bulk")
    page.goto("/ui/jobs?kind=bulk.a")

    page.get_by_role("link", name="Cancel all that match").click()
    expect(page.locator(".figure")).to_have_text("3")
    page.get_by_label("Reason").fill("a mistake")
    page.get_by_role("button", name="Cancel 3 jobs").click()

    expect(page.locator(".flash")).to_contain_text("3 of 3 jobs")
    assert {state_of(site, job) for job in jobs} == {State.CANCELLED}
    assert state_of(site, other) is State.QUEUED


def test_ticked_jobs_are_cancelled_and_retried(page: Page, site: Site) -> None:
    jobs = [submit(site, "tick.me", queue="ticks") for _ in range(3)]
    page.goto("/ui/jobs?kind=tick.me")

    for job in jobs[:2]:
        page.locator(f"#tick-{job}").check()
    page.get_by_role("button", name="Cancel ticked").click()
    page.get_by_role("button", name="Cancel 2 jobs").click()
    expect(page.locator(".flash")).to_contain_text("2 of 2 jobs")
    assert [state_of(site, job) for job in jobs] == [State.CANCELLED, State.CANCELLED, State.QUEUED]

    page.locator(f"#tick-{jobs[0]}").check()
    page.locator(f"#tick-{jobs[2]}").check()
    page.get_by_role("button", name="Retry ticked").click()
    page.get_by_role("button", name="Retry 2 jobs").click()
    expect(page.locator(".flash")).to_contain_text("1 of 2 jobs")
    assert state_of(site, jobs[0]) is State.QUEUED


def test_filters_apply_at_once_and_live_in_the_address(page: Page, site: Site) -> None:
    job = submit(site, "needle", queue="hay")
    submit(site, "straw", queue="hay")
    page.goto("/ui/jobs")

    page.get_by_label("Search").fill("needle")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"q=needle"))
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Search").fill(str(job))
    expect(page).to_have_url(re.compile(rf"/ui/jobs/{job}$"))
    expect(page.locator("h1")).to_have_text("needle")


def test_a_filter_that_is_changed_leaves_the_others_as_they_are(page: Page, site: Site) -> None:
    fields = {"queue": "kept", "labels": {"team": "kept"}}
    submit(site, "kept.a", **fields)
    submit(site, "kept.b", **fields)
    ended = submit(site, "kept.a", **fields)
    submit(site, "kept.a", queue="kept")
    site.run(site.store.cancel(ended))
    page.goto("/ui/jobs?kind=kept.a&label=team%3Dkept")
    expect(page.locator("tbody tr")).to_have_count(2)

    page.get_by_label("State").select_option("waiting")

    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"state=queued.*kind=kept\.a.*label=team%3Dkept"))
    page.get_by_role("link", name="Cancel all that match").click()
    expect(page.locator(".figure")).to_have_text("1")
    page.get_by_role("link", name="Back").click()
    page.get_by_role("link", name="Without label team=kept").click()
    expect(page.locator("tbody tr")).to_have_count(2)


def test_a_schedule_is_paused_resumed_and_triggered(page: Page, site: Site) -> None:
    rarely = Cron("0 0 29 2 *", "UTC")  # or the minute might turn meanwhile
    schedule = site.run(site.store.create_schedule(a_schedule("steered", rarely, queue="nobody")))
    page.goto(f"/ui/schedules/{schedule.id}")

    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".flash")).to_have_text("steered is paused.")
    assert site.run(site.store.get_schedule(schedule.id)).paused
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".flash")).to_have_text("steered goes on from now.")
    assert not site.run(site.store.get_schedule(schedule.id)).paused
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("h1")).to_have_text("tidy")
    assert len(site.run(site.store.occurrences(schedule.id))) == 1


def test_a_group_of_dead_letters_is_redriven_after_its_number_was_shown(page: Page, site: Site) -> None:
    jobs = [fail(site, "broken", "disk full") for _ in range(2)]
    other = fail(site, "broken", "out of ink")
    page.goto("/ui/dead-letters")

    page.get_by_role("row", name="disk full").get_by_role("link", name="Redrive").click()
    page.get_by_role("button", name="Redrive 2 jobs").click()

    expect(page.locator(".flash")).to_contain_text("2 jobs")
    assert {state_of(site, job) for job in jobs} == {State.QUEUED}
    assert state_of(site, other) is State.DEAD


def test_a_gate_is_closed_and_opened(page: Page, site: Site) -> None:
    page.goto("/ui/gates")

    page.get_by_label("Kind").fill("gated.kind")
    page.get_by_label("Reason").fill("the database moves")
    page.get_by_role("button", name="Close the gate").click()
    row = page.get_by_role("row", name="gated.kind")
    expect(row).to_contain_text("the database moves")
    assert any(gate.kind == "gated.kind" and gate.author == "local" for gate in site.run(site.store.gates()))
    row.get_by_role("button", name="Open").click()
    expect(page.locator(".flash")).to_have_text("The gate is open.")
    assert not any(gate.kind == "gated.kind" for gate in site.run(site.store.gates()))


def test_a_limit_is_set_and_removed(page: Page, site: Site) -> None:
    page.goto("/ui/limits")

    page.get_by_label("Key").fill("printers / 2nd floor")
    page.get_by_label("At most at once").fill("3")
    page.get_by_role("button", name="Set the limit").click()
    row = page.get_by_role("row", name="printers / 2nd floor")
    expect(row).to_contain_text("3")
    row.get_by_role("button", name="Remove").click()
    expect(page.locator(".flash")).to_have_text("The limit is gone.")
    assert "printers / 2nd floor" not in [limit.key for limit in site.run(site.store.limits())]


def test_a_channel_is_added_subscribed_told_again_and_removed(page: Page, site: Site) -> None:
    page.goto("/ui/notifications")
    add = page.locator("form[action='/ui/channels']")
    add.get_by_label("Name").fill("chat")
    add.get_by_label("Address").fill("https://chat.example.org/t0ken")
    add.get_by_label("Whose").select_option("tenant")
    add.get_by_role("button", name="Add the channel").click()
    expect(page.locator(".new-key")).to_contain_text("whsec_")
    page.get_by_role("link", name="I have it").click()
    expect(page.get_by_role("region", name="Channels")).to_contain_text("https://chat.example.org/…")
    expect(page.locator("body")).not_to_contain_text("t0ken")

    wish = page.locator("form[action='/ui/subscriptions']")
    wish.get_by_label("Channel").select_option("chat of default")
    wish.get_by_label("Kind").fill("chatted")
    wish.get_by_label("cancelled").check()
    wish.get_by_role("button", name="Subscribe").click()
    expect(page.locator(".flash")).to_have_text("chat hears of it from now on.")
    job = submit(site, "chatted", queue="nobody")
    site.run(site.store.cancel(job))
    site.run(site.store.spread_happenings())
    [parcel] = site.run(site.store.take_deliveries())
    site.run(site.store.close_delivery(parcel, Answer(accepted=True, told="answered 204")))

    row = page.get_by_role("region", name="Deliveries").get_by_role("row", name="chat")
    expect(row).to_contain_text("answered 204")
    row.get_by_text("attempts and message").click()
    expect(row.locator("pre")).to_contain_text(str(job))
    row.get_by_role("button", name="Resend").click()
    expect(page.locator(".flash")).to_have_text("The message is sent to chat again.")
    [again] = site.run(site.store.take_deliveries())
    assert again.key == parcel.key
    site.run(site.store.close_delivery(again, Answer(accepted=True, told="answered 200")))
    row = page.get_by_role("region", name="Channels").get_by_role("row", name="chat")
    row.get_by_role("button", name="Remove").click()
    expect(page.locator(".flash")).to_contain_text("The channel is gone")
    assert "chat" not in [channel.name for channel in site.run(site.store.channels())]


def test_a_channel_is_tried_and_the_log_says_how_it_was_answered(page: Page, site: Site) -> None:
    channel = site.run(site.store.add_channel(ChannelSpec(name="tried", address="https://tried.example.org"))).channel
    page.goto("/ui/notifications")
    row = page.get_by_role("region", name="Channels").get_by_role("row", name="tried")
    row.get_by_role("button", name="Test").click()
    expect(page.locator(".flash")).to_contain_text("A test message is on its way to tried.")
    [parcel] = site.run(site.store.take_deliveries())
    assert (parcel.channel_id, parcel.once) == (channel.id, True)
    site.run(site.store.close_delivery(parcel, Answer(accepted=False, told="answered 503")))
    row = page.get_by_role("region", name="Deliveries").get_by_role("row", name="tried")
    expect(row).to_contain_text("failed")
    expect(row).to_contain_text("answered 503")
    site.run(site.store.remove_channel(channel.id))


def test_an_alert_is_acknowledged_and_rules_are_silenced(page: Page, site: Site) -> None:
    page.goto("/ui/alerts")
    page.get_by_role("row", name="queue mail waits").get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".flash")).to_have_text("local looks after queue.age of mail.")
    expect(page.get_by_role("row", name="queue mail waits")).to_contain_text("local")

    page.get_by_label("Lasts").fill("2h")
    page.get_by_label("Reason").fill("moving racks")
    page.get_by_label("queue.age").check()
    page.get_by_role("button", name="Set the window").click()
    row = page.get_by_role("listitem").filter(has_text="moving racks")
    expect(row).to_contain_text("queue.age")
    row.get_by_role("button", name="Remove").click()
    expect(page.locator(".flash")).to_contain_text("The maintenance window is over")
    assert "moving racks" not in [window.reason for window in site.run(site.store.windows())]


def test_bad_input_is_told_in_one_sentence(page: Page) -> None:
    page.goto("/ui/limits")

    page.get_by_label("Key").fill("bad")
    page.get_by_label("Starts").fill("fast")
    with page.expect_response("**/ui/limits") as told:
        page.get_by_role("button", name="Set the limit").click()

    assert told.value.status == 422
    expect(page.get_by_role("alert")).to_contain_text("rate")


def test_what_is_done_is_written_down(page: Page, site: Site) -> None:
    job = submit(site, "audited", queue="nobody")
    page.goto(f"/ui/jobs/{job}")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".flash")).to_be_visible()
    page.get_by_role("button", name="Retry").click()
    expect(page.locator(".flash")).to_be_visible()

    page.goto(f"/ui/audit?subject={job}")

    expect(page.locator("tbody")).to_contain_text("jobs.retry")
    expect(page.locator("tbody")).to_contain_text("local")
