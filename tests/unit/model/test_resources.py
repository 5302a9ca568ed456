from datetime import timedelta
from random import Random

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.resources import (
    MAX_AMOUNT,
    Needs,
    Offer,
    check_needs,
    check_offer,
    check_resources,
    fits,
    give_back,
    needs_text,
    parse_needs_text,
    parse_resources,
    resources_text,
    should_reserve,
    spare,
    take,
)

GIB = 1 << 30
LONG = timedelta(seconds=30)
NAMES = ["cpu", "memory", "gpu", "licence"]

amounts = st.integers(0, 10)
resources = st.dictionaries(st.sampled_from(NAMES), amounts)
labels = st.dictionaries(st.sampled_from(["zone", "os"]), st.sampled_from(["a", "b", "", 'q"ü,=;{']))
needs = st.builds(Needs, resources=resources, labels=labels)


def asks(**amounts: int) -> Needs:
    return Needs(resources=amounts)


# Arithmetic


def test_a_job_fits_if_all_that_it_asks_for_is_free() -> None:
    free = {"cpu": 1000, "memory": GIB}

    assert fits(asks(cpu=1000, memory=GIB), free)
    assert fits(asks(), free)
    assert fits(asks(gpu=0), free)
    assert not fits(asks(cpu=1001), free)
    assert not fits(asks(cpu=1, gpu=1), free)


def test_a_job_fits_only_where_all_its_labels_are() -> None:
    job = Needs(labels={"zone": "eu", "os": "linux"})

    assert fits(job, {}, {"zone": "eu", "os": "linux", "disk": "ssd"})
    assert not fits(job, {}, {"zone": "eu", "os": "mac"})
    assert not fits(job, {}, {"zone": "eu"})
    assert not fits(Needs(labels={"zone": ""}), {}, {})
    assert fits(job, {}), "labels that were looked at before are left out"


def test_taking_leaves_the_rest_and_the_input_alone() -> None:
    free = {"cpu": 1000, "gpu": 2}

    assert take(free, asks(cpu=300)) == {"cpu": 700, "gpu": 2}
    assert free == {"cpu": 1000, "gpu": 2}


def test_taking_more_than_is_free_is_an_error() -> None:
    with pytest.raises(Invalid, match=r"^resources: 5 of cpu cannot be taken, for 3 are free$"):
        take({"cpu": 3}, asks(cpu=5))
    with pytest.raises(Invalid, match=r"^resources: 1 of gpu cannot be taken, for 0 are free$"):
        take({"cpu": 3}, asks(gpu=1))


def test_giving_back_twice_is_an_error() -> None:
    with pytest.raises(Invalid, match=r"^resources: 5 of cpu given back makes 12, over 10 in all$"):
        give_back({"cpu": 7}, asks(cpu=5), {"cpu": 10})
    with pytest.raises(Invalid, match=r"^resources: 1 of gpu given back makes 1, over 0 in all$"):
        give_back({}, asks(gpu=1), {"cpu": 10})


@given(needs, resources)
def test_what_is_taken_and_given_back_adds_up(job: Needs, free: dict[str, int]) -> None:
    assume(fits(job, free))

    assert give_back(take(free, job), job, free) == free


@given(needs, resources)
def test_taking_succeeds_just_when_it_fits_and_is_never_negative(job: Needs, free: dict[str, int]) -> None:
    if not fits(job, free):
        with pytest.raises(Invalid):
            take(free, job)
        return
    left = take(free, job)
    assert min(left.values(), default=0) >= 0
    assert left.keys() == free.keys()


@given(resources, st.lists(needs, max_size=12), st.randoms(use_true_random=False))
def test_whatever_order_jobs_come_and_go_in_all_is_free_at_the_end(
    total: dict[str, int], jobs: list[Needs], random: Random
) -> None:
    free, running = dict(total), list[Needs]()
    for job in jobs:
        if fits(job, free):
            free = take(free, job)
            running.append(job)
        elif running:
            free = give_back(free, running.pop(random.randrange(len(running))), total)
        assert all(0 <= free[name] <= total[name] for name in total)
    for job in running:
        free = give_back(free, job, total)

    assert free == total


# Reservation


def test_a_large_job_gets_a_reservation_after_half_a_minute() -> None:
    offer, free = Offer(resources={"cpu": 4000}), {"cpu": 1000}

    assert should_reserve(LONG, asks(cpu=3000), free, offer)
    assert not should_reserve(LONG - timedelta.resolution, asks(cpu=3000), free, offer)


def test_a_job_that_fits_needs_no_reservation() -> None:
    assert not should_reserve(LONG, asks(cpu=1000), {"cpu": 1000}, Offer(resources={"cpu": 4000}))


def test_a_worker_reserves_nothing_for_a_job_that_it_can_never_run() -> None:
    offer = Offer(resources={"cpu": 4000}, labels={"zone": "eu"})

    assert not should_reserve(LONG, asks(cpu=4001), {"cpu": 0}, offer)
    assert not should_reserve(LONG, asks(cpu=1, gpu=1), {"cpu": 0}, offer)
    assert not should_reserve(LONG, Needs(resources={"cpu": 1}, labels={"zone": "us"}), {"cpu": 0}, offer)


def test_others_may_take_what_a_reservation_does_not_ask_for() -> None:
    assert spare({"cpu": 1000, "memory": 10, "gpu": 1}, asks(cpu=3000, memory=4)) == {"cpu": 0, "memory": 6, "gpu": 1}


@given(needs, needs, resources)
def test_who_takes_only_what_is_spare_never_delays_the_reservation(
    large: Needs, small: Needs, free: dict[str, int]
) -> None:
    assume(fits(small, spare(free, large)))
    left = take(free, small)

    for name, amount in large.resources.items():
        assert min(left.get(name, 0), amount) == min(free.get(name, 0), amount)


# Text


def test_needing_nothing_is_the_empty_text() -> None:
    assert needs_text(Needs()) == needs_text(asks(cpu=0)) == ""
    assert parse_needs_text("") == Needs()


def test_the_stored_text_of_needs_never_changes() -> None:
    job = Needs(resources={"memory": GIB, "cpu": 500, "gpu": 0}, labels={"zone": "eu", "os": "linux"})

    assert needs_text(job) == '{"resources":{"cpu":500,"memory":1073741824},"labels":{"os":"linux","zone":"eu"}}'
    assert needs_text(asks(gpu=1)) == '{"resources":{"gpu":1}}'
    assert needs_text(Needs(labels={"zone": ""})) == '{"labels":{"zone":""}}'


@given(needs)
def test_the_text_of_needs_reads_back_the_same(job: Needs) -> None:
    plain = Needs(resources={name: amount for name, amount in job.resources.items() if amount}, labels=job.labels)

    assert parse_needs_text(needs_text(job)) == plain
    assert needs_text(plain) == needs_text(job)


@given(needs, needs, resources)
def test_needs_of_one_text_fit_the_same_workers(one: Needs, other: Needs, free: dict[str, int]) -> None:
    backwards = Needs(
        resources=dict(reversed(list(one.resources.items()))), labels=dict(reversed(list(one.labels.items())))
    )

    assert needs_text(backwards) == needs_text(one)
    if needs_text(one) == needs_text(other):
        assert fits(one, free, {}) == fits(other, free, {})


@pytest.mark.parametrize("text", ["{", "[]", '{"cpu":1}', '{"resources":{"cpu":"x"}}', '{"labels":{"a":1}}', "\ud800"])
def test_needs_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"^needs: cannot be read: "):
        parse_needs_text(text)


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("", {}),
        ("  ", {}),
        ("cpu=500m,memory=2GiB,gpu=1", {"cpu": 500, "memory": 2 * GIB, "gpu": 1}),
        (" cpu = 2 , gpu=0 ", {"cpu": 2000, "gpu": 0}),
        ("cpu=0.5", {"cpu": 500}),
        ("cpu=1.250", {"cpu": 1250}),
        ("memory=1.5GiB", {"memory": GIB * 3 // 2}),
        ("memory=512Mi", {"memory": 512 << 20}),
        ("memory=1kB", {"memory": 1000}),
        ("memory=3TB", {"memory": 3 * 10**12}),
        ("memory=100", {"memory": 100}),
        ("memory=100B", {"memory": 100}),
    ],
)
def test_resources_are_read_from_text(text: str, amounts: dict[str, int]) -> None:
    assert parse_resources(text) == amounts


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cpu", "must be a list such as cpu=500m,memory=2GiB, not 'cpu'"),
        ("cpu=1,", "must be a list such as cpu=500m,memory=2GiB, not ''"),
        ("cpu=", "cpu must be a number (units: m), not ''"),
        ("cpu=2GiB", "cpu must be a number (units: m), not '2GiB'"),
        ("cpu=-1", "cpu must be a number (units: m), not '-1'"),
        ("cpu=1e3", "cpu must be a number (units: m), not '1e3'"),
        ("cpu=0.0005", "cpu must be a whole number of its smallest unit, not 0.0005"),
        ("gpu=0.5", "gpu must be a whole number of its smallest unit, not 0.5"),
        ("gpu=1m", "gpu must be a number, not '1m'"),
        ("gpu=\u0665", "gpu must be a number, not '\u0665'"),
        ("memory=2gb", "memory must be a number (units: B, TiB, GiB"),
        ("cpu=1,cpu=2", "names cpu twice"),
        ("=1", "must not be empty"),
        ("a b=1", "must consist of letters"),
        ("memory=9999999999999999999", "memory must be a whole number between 0 and 9223372036854775807"),
        (",".join(f"r{n}=1" for n in range(33)), "must be at most 32, not 33"),
    ],
)
def test_bad_text_of_resources_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_resources(text, "--resources")

    assert caught.value.field == "--resources"
    assert caught.value.why.startswith(why)


@given(st.dictionaries(st.sampled_from(NAMES), st.integers(0, MAX_AMOUNT) | st.integers(0, 99).map(lambda n: n << 30)))
def test_the_text_of_resources_reads_back_the_same(amounts: dict[str, int]) -> None:
    assert parse_resources(resources_text(amounts)) == amounts


def test_the_text_of_resources_is_for_people() -> None:
    assert resources_text({"memory": 2 * GIB, "gpu": 1, "cpu": 500}) == "cpu=500m,gpu=1,memory=2GiB"
    assert resources_text({"cpu": 2000, "memory": 1000}) == "cpu=2,memory=1000"
    assert resources_text({"memory": 0}) == "memory=0"


# Checks


@pytest.mark.parametrize("amount", [-1, MAX_AMOUNT + 1, 1.0, True, "1", None])
def test_an_amount_must_be_a_whole_number(amount: object) -> None:
    with pytest.raises(Invalid, match=r"^offer.resources: cpu must be a whole number between 0 and "):
        check_resources("offer.resources", {"cpu": amount})  # type: ignore[dict-item]


def test_needs_and_offers_are_checked_in_all_their_parts() -> None:
    with pytest.raises(Invalid, match=r"^needs.resources: cpu "):
        check_needs(asks(cpu=-1))
    with pytest.raises(Invalid, match=r"^needs.labels: the name 'a b' "):
        check_needs(Needs(labels={"a b": ""}))
    with pytest.raises(Invalid, match=r"^offer.resources: must consist of "):
        check_offer(Offer(resources={"a b": 1}))
    with pytest.raises(Invalid, match=r"^offer.labels: the value of a "):
        check_offer(Offer(labels={"a": "\0"}))


def test_sensible_needs_and_offers_pass() -> None:
    job, worker = Needs(resources={"cpu": 0}, labels={"zone": "eu"}), Offer(resources={"cpu": MAX_AMOUNT})

    assert check_needs(job) is job
    assert check_needs(Needs()) == Needs()
    assert check_offer(worker) is worker
    assert msgspec.json.decode(msgspec.json.encode(worker), type=Offer) == worker
