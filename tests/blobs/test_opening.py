"""URLs of places, and an S3 that does not want or is not there."""

from pathlib import Path

import pytest

from tests.s3 import KEY, S3, SECRET
from tidewheel.blobs import open_blobs
from tidewheel.blobs.s3 import shared_credentials
from tidewheel.errors import Invalid, Unavailable


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "must be file:///folder"),
        ("/var/lib/blobs", "must be file:///folder"),
        ("ftp://host/x", "must be file:///folder"),
        ("memory://x", "must be file:///folder"),
        ("file://relative/x", "absolute path"),
        ("file:relative", "absolute path"),
        ("file:///x?mode=1", "absolute path"),
        ("file:///x%00y", "absolute path"),
        ("s3://", "must name a bucket"),
        ("s3:///prefix", "must name a bucket"),
        ("s3://bucket:90/x", "must name a bucket"),
        ("s3://bucket:port/x", "is no URL"),
        ("s3://bucket/x?secret_access_key=abc", "not secret_access_key"),
        ("s3://bucket/x?endpoint=ftp://host", "http or https"),
        ("s3://bucket/x?endpoint=http://user:pass@host", "credentials do not belong"),
        ("s3://user:pass@bucket/x", "credentials do not belong"),
    ],
)
def test_a_bad_url_is_refused_with_the_reason(url: str, why: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        open_blobs(url)

    assert "pass" not in str(caught.value)
    assert "abc" not in str(caught.value)


async def test_wrong_credentials_are_said_plainly_and_not_shown(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")

    with pytest.raises(Unavailable, match="bucket refuses our credentials") as caught:
        await open_blobs(s3.url("x")).check()

    assert "wrong-secret" not in str(caught.value)


async def test_a_bucket_that_does_not_exist_is_said_plainly(s3: S3, folder: Path) -> None:
    blobs = open_blobs(s3.url("x", bucket="absent"))

    with pytest.raises(Unavailable, match="there is no bucket absent"):
        await blobs.check()
    with pytest.raises(Unavailable, match="there is no bucket absent"):
        await blobs.fetch("a" * 64, folder / "out")
    with pytest.raises(Unavailable, match="there is no bucket absent"):
        await blobs.put_bytes(b"x")


@pytest.mark.usefixtures("s3")
async def test_an_endpoint_that_does_not_answer_is_unavailable() -> None:
    blobs = open_blobs(S3("http://127.0.0.1:1").url("x"))

    with pytest.raises(Unavailable, match="bucket bucket: "):
        await blobs.put_bytes(b"x")


async def test_credentials_may_come_from_the_shared_files(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[default]\naws_access_key_id = x\naws_secret_access_key = y\n"
        f"[tide]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_PROFILE", "tide")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    await open_blobs(s3.url("x")).check()


def test_the_environment_comes_before_the_shared_files(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = k\naws_secret_access_key = s\naws_session_token = t\n"
    )
    (tmp_path / ".aws" / "config").write_text("[default]\nregion = a\n[profile two]\nregion = b\n")
    home = {"HOME": str(tmp_path)}
    keys = {"access_key_id": "k", "secret_access_key": "s", "session_token": "t"}

    assert shared_credentials(home) == {"region": "a", **keys}
    assert shared_credentials({**home, "AWS_PROFILE": "two"}) == {"region": "b"}
    assert shared_credentials({**home, "AWS_REGION": "c"}) == keys
    assert shared_credentials({**home, "AWS_ACCESS_KEY_ID": "other"}) == {"region": "a"}
    assert shared_credentials({"HOME": str(tmp_path / "absent")}) == {}


def test_a_broken_shared_file_is_refused_without_showing_it(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("very-secret without a section")

    with pytest.raises(Invalid, match="cannot be read") as caught:
        shared_credentials({"HOME": str(tmp_path), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "broken")})

    assert "very-secret" not in str(caught.value)
