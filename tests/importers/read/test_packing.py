"""Packed files and tar archives: the same run, and the same guards as zip and gzip have."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zlib

import pyarrow as pa
import pytest

from core.importers import ReadLimits
from tests.importers.helpers import read, refusal, rows, up

RUN = "q1 Q0 a 1 9.5 bm25\nq1 Q0 b 2 9.0 bm25\n"
QRELS = "q1 0 a 1\nq1 0 b 0\n"


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}


def tarred(files: dict[str, str | bytes | tarfile.TarInfo], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def info(name: str, kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


@pytest.mark.parametrize("ending", PACKED)
def test_a_packed_file_is_the_same_run(ending, tmp_path):
    plain = read(up("bm25.run", RUN * 1))
    data = PACKED[ending](RUN.encode())
    path = tmp_path / f"bm25.run.{ending}"
    path.write_bytes(data)
    for offer in (up(f"bm25.run.{ending}", data), path, up("unnamed", data)):
        made = read(offer, collection_id="bm25")
        assert made.runs[0].run_id == plain.runs[0].run_id
        assert rows(made, "rankings").equals(rows(plain, "rankings"))
    assert read(path).collections[0].collection_id == "bm25"


@pytest.mark.parametrize("ending", ["bz2", "xz", "gz", "zst"])
def test_parts_one_after_the_other_are_one_file(ending):
    first, second = RUN.encode()[:30], RUN.encode()[30:]
    data = PACKED[ending](first) + PACKED[ending](second)
    assert read(up("x", data)).taken["rankings"] == 2


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("cut", [3, 12])
def test_cut_off(ending, cut):
    data = PACKED[ending](("".join(f"q{n} Q0 d{n * 7919 % 1000} 1 9.5 bm25\n" for n in range(2000))).encode())
    assert "x: " in refusal(up("x", data[:-cut]), format="trec-run")
    assert refusal(up("x", data[:20]), format="trec-run").startswith("x: ")


@pytest.mark.parametrize("ending", PACKED)
def test_bombs(ending):
    data = PACKED[ending]((RUN * 200_000).encode())
    by_ratio = ReadLimits(grace_bytes=1 << 20, ratio=50)
    for name, offered in (("x", data), ("x.tar", PACKED[ending](tarred({"run.txt": RUN * 100_000})))):
        assert "more than 50 times its size" in refusal(up(name, offered), limits=by_ratio)
        by_size = ReadLimits(total_bytes=1 << 20)
        assert "more than 1,048,576 bytes" in refusal(up(name, offered), limits=by_size)
    within = tarred({f"run.{ending}": data})
    assert "times its size" in refusal(up("x.tar", within), limits=by_ratio)


def test_an_xz_file_that_wants_gigabytes_of_memory_is_refused():
    head = bytearray(lzma.compress(RUN.encode()))
    # The dictionary's size stands in the block header (byte 12 on): 38 is 2 GiB.
    size = (head[12] + 1) * 4
    block = head[12 : 12 + size]
    block[4] = 38
    block[-4:] = zlib.crc32(bytes(block[:-4])).to_bytes(4, "little")
    head[12 : 12 + size] = block
    assert "Memory usage limit" in refusal(up("x.xz", bytes(head)), format="trec-run")


@pytest.mark.parametrize("ending", ["", *PACKED])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_tar_archive_is_a_folder(ending, form, tmp_path):
    long = f"{'d' * 90}/{'e' * 90}/more.run"
    more = {".DS_Store": "x", long: RUN.replace("bm25", "other")}
    files = {"./runs/bm25.run": RUN, "qrels/test.qrels": QRELS, **more}
    data = tarred({"runs": info("runs", tarfile.DIRTYPE), **files}, form)
    packed = PACKED[ending](data) if ending else data
    path = tmp_path / f"mine.tar{ending and '.'}{ending}"
    path.write_bytes(packed)
    for offer in (path, up(path.name, packed)):
        made = read(offer)
        assert (made.taken["rankings"], made.taken["judgements"], made.taken["runs"]) == (4, 2, 2)
        assert {run.label for run in made.runs} == {"bm25", "other"}
        assert [each.first for each in made.left_out] == [".DS_Store"]


HOSTILE = {
    "absolute name": ({"/etc/passwd": "x"}, "names a file outside itself"),
    "parent": ({"../../x": "x"}, "names a file outside itself"),
    "parent inside": ({"a/../../x": "x"}, "names a file outside itself"),
    "backslash": ({"..\\x": "x"}, "names a file outside itself"),
    "drive": ({"C:/x": "x"}, "names a file outside itself"),
    "symbolic link": ({"a": info("a", tarfile.SYMTYPE)}, "The archive holds a link."),
    "hard link": ({"a": info("a", tarfile.LNKTYPE)}, "The archive holds a link."),
    "device": ({"a": info("a", tarfile.CHRTYPE)}, "a device, a pipe or a sparse file"),
    "block device": ({"a": info("a", tarfile.BLKTYPE)}, "a device, a pipe or a sparse file"),
    "pipe": ({"a": info("a", tarfile.FIFOTYPE)}, "a device, a pipe or a sparse file"),
    "sparse": ({"a": info("a", tarfile.GNUTYPE_SPARSE)}, "a device, a pipe or a sparse file"),
    "clutter only": ({"__MACOSX/x": "y"}, "The archive holds no files."),
}


@pytest.mark.parametrize("ending", ["", "gz"])
@pytest.mark.parametrize(("files", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_archives_are_refused(files, message, ending):
    data = tarred(files if "no files" in message else {"run.txt": RUN, **files})
    said = refusal(up("evil.tar", PACKED[ending](data) if ending else data))
    assert message in said
    assert "evil.tar" in said


def test_twice_cut_off_and_too_many():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for _ in range(2):
            one = tarfile.TarInfo("a")
            one.size = len(RUN)
            archive.addfile(one, io.BytesIO(RUN.encode()))
    assert "two files of the same name" in refusal(up("x.tar", buffer.getvalue()))
    whole = tarred({"a": RUN * 100})
    assert "x.tar" in refusal(up("x.tar", whole[:1024]))
    many = tarred({str(number): RUN for number in range(11)})
    assert "more than 10 files" in refusal(up("x.tar", many), limits=ReadLimits(members=10))


def test_a_long_header_is_refused():
    made = tarfile.TarInfo("run.txt")
    made.size, made.pax_headers = len(RUN), {"comment": "x" * 200_000}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(made, io.BytesIO(RUN.encode()))
    assert "A header of the archive is too long." in refusal(up("x.tar", buffer.getvalue()))


def test_a_text_that_begins_as_bzip2_does_is_a_text():
    assert read(up("x", RUN.replace("q1", "BZh9"))).taken["rankings"] == 2
