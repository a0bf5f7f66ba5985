from __future__ import annotations

import gzip
import io
import os
import stat
import zipfile

import pytest

from core.errors import InputError
from core.importers import ReadLimits, Upload
from core.importers.read.source import opened
from core.importers.read.text import blocks, shown, whole
from tests.importers.helpers import read, refusal, up, zipped

RUN = "q1 Q0 a 1 9.5 bm25\n"
QRELS = "q1 0 a 1\n"


def member(name: str, content: bytes = b"x", **facts: int) -> bytes:
    """An archive of one file whose directory entry has the given facts."""
    buffer = io.BytesIO()
    info = zipfile.ZipInfo(name)
    for fact, value in facts.items():
        setattr(info, fact, value)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(info, content)
    return buffer.getvalue()


def encrypted() -> bytes:
    """A plain archive whose flags say that its member is encrypted."""
    data = bytearray(zipped({"run.txt": RUN}))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    return bytes(data)


def lying() -> bytes:
    """An archive whose directory promises fewer bytes than its member unfolds to."""
    data = bytearray(zipped({"run.txt": RUN * 1000}))
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (19).to_bytes(4, "little")
    return bytes(data)


def nameless() -> bytes:
    """An archive whose directory entry has an empty name."""
    data = bytearray(zipped({"x": RUN}))
    entry = data.index(b"PK\x01\x02")
    data[entry + 28] = 0
    del data[entry + 46]
    size = data.index(b"PK\x05\x06") + 12
    data[size] -= 1
    return bytes(data)


HOSTILE = {
    "absolute name": (member("/etc/passwd"), "names a file outside itself"),
    "parent": (member("../../x"), "names a file outside itself"),
    "parent inside": (member("a/../../x"), "names a file outside itself"),
    "backslash": (member("..\\x"), "names a file outside itself"),
    "drive": (member("C:/x"), "names a file outside itself"),
    "link": (member("run.txt", b"/etc/passwd", external_attr=(stat.S_IFLNK | 0o777) << 16), "symbolic link"),
    "encrypted": (encrypted(), "The archive is encrypted. Unpack it with its password first."),
    "no name": (nameless(), "The archive holds a file without a name."),
    "empty": (zipped({}), "The archive holds no files."),
    "clutter only": (zipped({"__MACOSX/x": "y"}), "The archive holds no files."),
    "cut off": (zipped({"run.txt": RUN})[:-30], "cannot be read"),
    "garbage": (b"PK\x03\x04" + bytes(100), "cannot be read"),
    "wrong length": (lying(), "cannot be read"),
}


@pytest.mark.parametrize(("data", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_archives_are_refused(data, message):
    said = refusal(up("evil.zip", data))
    assert message in said
    assert "evil.zip" in said


def test_two_members_of_one_name():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", RUN)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a", RUN)
    assert "two files of the same name" in refusal(up("x.zip", buffer.getvalue()))


def test_damaged_member():
    data = bytearray(zipped({"run.txt": RUN * 50}, zipfile.ZIP_STORED))
    data[60] ^= 0xFF
    assert "x.zip/run.txt: The file cannot be read: Bad CRC-32" in refusal(up("x.zip", bytes(data)))


@pytest.mark.parametrize("packed", ["zip", "gz"])
def test_bombs(packed):
    text = (RUN * 200_000).encode()
    data = zipped({"run.txt": text}) if packed == "zip" else gzip.compress(text, mtime=0)
    by_ratio = ReadLimits(grace_bytes=1 << 20, ratio=50)
    assert "more than 50 times its size" in refusal(up(f"x.{packed}", data), limits=by_ratio)
    by_size = ReadLimits(total_bytes=1 << 20)
    assert "more than 1,048,576 bytes" in refusal(up(f"x.{packed}", data), limits=by_size)


def test_bomb_within_a_member():
    """A gzip file inside an archive unfolds within the same limits."""
    data = zipped({"run.gz": gzip.compress((RUN * 200_000).encode())})
    assert "times its size" in refusal(up("x.zip", data), limits=ReadLimits(grace_bytes=1 << 20, ratio=50))


def test_too_many_members(tmp_path):
    data = zipped({f"{number}": RUN for number in range(11)})
    assert "more than 10 files" in refusal(up("x.zip", data), limits=ReadLimits(members=10))
    for number in range(11):
        (tmp_path / str(number)).write_text(RUN)
    assert "more than 10 files" in refusal(tmp_path, limits=ReadLimits(members=10))


def test_an_archive_within_an_archive_is_not_opened():
    assert "of no format known here" in refusal(up("x.zip", zipped({"inner.zip": zipped({"run.txt": RUN})})))


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(RUN.encode(), mtime=0)[:-6],
        gzip.compress(RUN.encode(), mtime=0)[:12],
        b"\x1f\x8b\x08",
        b"\x1f\x8b" + bytes(9),
    ],
)
def test_broken_gzip(data):
    assert "x.gz: The file cannot be read" in refusal(up("x.gz", data), format="trec-run")


def test_same_run_from_file_folder_zip_and_upload(tmp_path):
    path = tmp_path / "runs" / "x.txt"
    path.parent.mkdir()
    path.write_text(RUN)
    offers = [path, str(path), path.parent, up("x.txt", RUN), up("x.zip", zipped({"x.txt": RUN}))]
    assert len({read(offer, collection_id="c").runs[0].run_id for offer in offers}) == 1


def test_streamlit_like_uploads_are_read():
    class Uploaded(io.BytesIO):
        name = "C:\\fakepath\\x.txt"

    assert read(Uploaded(RUN.encode())).detected[0].name == "x.txt"


def test_links_and_special_files_are_not_read(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "x.txt").write_text(RUN)
    (tmp_path / "secret.txt").write_text(RUN.replace("bm25", "secret"))
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "away").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    made = read(folder)
    assert [run.label for run in made.runs] == ["bm25"]
    assert {each.file for each in made.reports if each.left_out and each.kind == "file"} == {
        "away", "link.txt", "pipe"
    }  # fmt: skip
    assert sum(left.count for left in made.left_out) == 3
    assert "neither a regular file nor a folder" in refusal(folder / "pipe")


def test_nothing_there(tmp_path):
    assert "There is no such file or folder." in refusal(tmp_path / "none")
    assert "The folder holds no files." in refusal(tmp_path)
    assert "Nothing was offered." in refusal()
    (tmp_path / "empty").touch()
    assert "The file is empty." in refusal(tmp_path / "empty")


def test_digest_is_of_the_content():
    with opened(
        [up("a", RUN), up("b.gz", gzip.compress(RUN.encode(), mtime=0)), up("c", QRELS)], ReadLimits()
    ) as archives:
        first, second, third = (archive.members[0].digest for archive in archives)
    assert first == second != third


@pytest.mark.parametrize("size", [1, 2, 5, 64])
def test_blocks_join_to_the_text(size):
    text = "\ufeffé1\n\nlast ü"
    with opened([Upload("x", text.encode())], ReadLimits(block_bytes=size)) as archives:
        member = archives[0].members[0]
        found = list(blocks(member))
        assert whole(member).decode() == text.removeprefix("\ufeff")
    assert all(block.data.endswith(b"\n") for block in found[:-1])
    assert [block.first_line for block in found] == [
        1 + text.encode()[: sum(len(b.data) for b in found[:n]) + 3].count(b"\n") if n else 1
        for n in range(len(found))
    ]


@pytest.mark.parametrize("size", [4, 1000])
def test_bad_bytes_are_placed_exactly(size):
    with (
        opened([Upload("x", b"\xef\xbb\xbfab\ncd\n\xff\n")], ReadLimits(block_bytes=size)) as archives,
        pytest.raises(InputError, match=r"^x:3: Byte 9 \(0xff\) is not valid UTF-8\."),
    ):
        whole(archives[0].members[0])


def test_shown_is_one_safe_short_line():
    assert shown("a\x1b[31m\nb\u202e") == "a\\x1b[31m\\x0ab\\x202e"
    assert len(shown("x" * 1000)) == 80
