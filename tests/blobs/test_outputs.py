"""Results and outputs, in every kind of place."""

import os
from pathlib import Path
from uuid import uuid4

import pytest

from tidewheel.blobs import Blobs, Output
from tidewheel.blobs.names import artifact_location
from tidewheel.errors import Invalid, NotFound

BAD_NAMES = [
    "",
    "/etc/passwd",
    "..",
    "../up",
    "a/../../b",
    "./a",
    "a//b",
    "a/",
    "a\\b",
    "line\nbreak",
    "nul\0",
    "escape\x1b[2J",
    "c1\x9b",
    "turned\u202egpj.exe",
    "half\udc80",
    "x" * 201,
    "ä" * 101,
    "/".join(["x" * 100] * 7),
]


async def test_a_result_comes_back_from_its_location(blobs: Blobs) -> None:
    job_id = uuid4()
    text = '{"sum": [1, 2, "ä"]}'

    location = await blobs.store_result(job_id, 3, text)

    assert location == f"blob:outputs/{job_id}/3/result.json"
    assert (await blobs.read(location, max_bytes=100)).decode() == text


async def test_a_result_that_is_stored_again_replaces_the_first(blobs: Blobs) -> None:
    job_id = uuid4()

    await blobs.store_result(job_id, 1, "1")
    location = await blobs.store_result(job_id, 1, "22")

    assert await blobs.read(location, max_bytes=2) == b"22"


async def test_a_result_is_read_for_its_own_run_alone(blobs: Blobs) -> None:
    job_id = uuid4()
    location = await blobs.store_result(job_id, 2, "1")
    artifact = artifact_location(await blobs.put_bytes(b"2"))

    assert await blobs.read_result(job_id, 2, location) == b"1"
    for other, token, place in ((uuid4(), 2, location), (job_id, 1, location), (job_id, 2, artifact)):
        with pytest.raises(NotFound):
            await blobs.read_result(other, token, place)


async def test_the_jobs_that_left_something_behind_are_listed_page_by_page(blobs: Blobs, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    jobs = sorted((uuid4() for _ in range(5)), key=str)
    for job_id in jobs:
        for token in (1, 2):
            await blobs.store_result(job_id, token, "1")
        await blobs.store_output(job_id, 1, "deep/file", tmp_path / "file")
    assert await blobs.jobs_with_outputs("", 10) == (jobs, str(jobs[-1]))

    first, after = await blobs.jobs_with_outputs("", 2)
    rest, last = await blobs.jobs_with_outputs(after or "", 3)

    assert first + rest == jobs
    assert await blobs.jobs_with_outputs(last or "", 3) == ([], None)
    await blobs.delete_outputs(jobs[0])
    assert (await blobs.jobs_with_outputs("", 1))[0] == [jobs[1]]


async def test_a_place_that_holds_nothing_has_no_jobs(blobs: Blobs) -> None:
    assert await blobs.jobs_with_outputs("", 10) == ([], None)


async def test_more_than_was_asked_for_is_refused(blobs: Blobs) -> None:
    location = await blobs.store_result(uuid4(), 1, "123456")

    assert await blobs.read(location, max_bytes=6) == b"123456"
    with pytest.raises(Invalid, match="holds more than 5 bytes"):
        await blobs.read(location, max_bytes=5)


async def test_outputs_are_listed_by_run_and_name(blobs: Blobs, folder: Path) -> None:
    job_id, other = uuid4(), uuid4()
    (folder / "f").write_bytes(b"12345")
    names = ["result.json", "plot.png", "a/b/c.txt", "mit ä & %20 ? # + = ~.txt", "...", "x" * 200]
    for name in names:
        await blobs.store_output(job_id, 2, name, folder / "f")
    (folder / "f").write_bytes(b"1")
    await blobs.store_output(job_id, 10, "late", folder / "f")
    await blobs.store_output(other, 2, "of another job", folder / "f")
    await blobs.store_result(job_id, 2, "{}")

    outputs = await blobs.list_outputs(job_id)

    expected = [(2, name, 5) for name in sorted(names)] + [(10, "late", 1)]
    assert [(output.token, output.name, output.size) for output in outputs] == expected
    for output in outputs:
        assert len(await blobs.read(output.location, max_bytes=5)) == output.size


async def test_a_job_without_outputs_has_none(blobs: Blobs) -> None:
    assert await blobs.list_outputs(uuid4()) == []


async def test_what_was_deleted_is_not_found_and_deleting_it_again_is_fine(blobs: Blobs, folder: Path) -> None:
    (folder / "f").write_bytes(b"1")
    job_id = uuid4()
    kept = await blobs.store_output(job_id, 1, "kept", folder / "f")
    location = await blobs.store_output(job_id, 1, "gone", folder / "f")

    await blobs.delete(location)
    await blobs.delete(location)

    with pytest.raises(NotFound) as caught:
        await blobs.read(location, max_bytes=1)
    assert caught.value.key == location
    assert await blobs.list_outputs(job_id) == [Output(token=1, name="kept", size=1, location=kept)]


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_a_harmful_name_is_refused(blobs: Blobs, folder: Path, name: str) -> None:
    (folder / "f").write_bytes(b"1")
    job_id = uuid4()

    with pytest.raises(Invalid, match="output name"):
        await blobs.store_output(job_id, 1, name, folder / "f")

    assert await blobs.list_outputs(job_id) == []


async def test_a_location_that_is_none_of_ours_is_refused(blobs: Blobs) -> None:
    job = uuid4()
    for location in [
        "",
        "blob:",
        "blob:/etc/passwd",
        "blob:parts/x",
        "blob:sha256/../../etc/passwd",
        f"blob:sha256/{'a' * 64}",
        f"outputs/{job}/1/result.json",
        f"blob:outputs/{job}/1/files/../../../../etc/passwd",
        f"blob:outputs/{job}/1/files/",
        f"blob:outputs/{job}/-1/result.json",
        f"blob:outputs/{job}/01/result.json",
        f"blob:outputs/{str(job).upper()}/1/result.json/x",
        f"s3://bucket/outputs/{job}/1/result.json",
        f"blob:outputs/{job}/1/result.json\n",
    ]:
        with pytest.raises(Invalid):
            await blobs.read(location, max_bytes=10)
        with pytest.raises(Invalid):
            await blobs.delete(location)


async def test_no_link_leads_out_of_the_folder_of_a_run(blobs: Blobs, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_bytes(b"secret")
    (folder / "sub").mkdir()
    (folder / "sub" / "fine").write_bytes(b"fine")
    (folder / "link").symlink_to(tmp_path / "secrets" / "key")
    (folder / "door").symlink_to(tmp_path / "secrets")
    os.mkfifo(folder / "pipe")
    job_id = uuid4()

    location = await blobs.store_output(job_id, 1, "fine", folder / "sub" / "fine", inside=folder)
    for path in ["link", "door/key", "sub/../../secrets/key", "../secrets/key", "pipe", "sub", "absent", ""]:
        with pytest.raises(Invalid, match="path"):
            await blobs.store_output(job_id, 1, "stolen", folder / path, inside=folder)
    with pytest.raises(Invalid, match="path"):
        await blobs.store_output(job_id, 1, "stolen", tmp_path / "secrets" / "key", inside=folder)

    assert await blobs.read(location, max_bytes=10) == b"fine"
    assert [output.name for output in await blobs.list_outputs(job_id)] == ["fine"]


async def test_a_check_of_a_good_place_passes_and_leaves_nothing(blobs: Blobs) -> None:
    await blobs.check()

    assert await blobs._backend.find("outputs") == []
