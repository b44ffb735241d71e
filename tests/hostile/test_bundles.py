"""Bundles from strangers: every trick of the zip format is refused, and nothing is written."""

from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from core.archives import MOST_MEMBERS, open_archive
from core.bundle import bundle_bytes, verify
from core.errors import BundleError, JustitiaError, ReadingError
from core.releases import TreeRelease, unpack_bytes
from tests.hostile import seeds
from tests.hostile.mutation import unzipped, zipped
from tests.hostile.targets import check_message

STAMP = "SIMULATED_NOT_PRIVATE_"
MANIFEST = f"{STAMP}manifest.json"
PATHS = (
    "../evil.txt",
    "../../../../tmp/evil.txt",
    "/tmp/evil.txt",
    "C:\\evil.txt",
    "C:/evil.txt",
    "marginals/../../evil.txt",
    "marginals\\one_way.csv",
    "//server/share/evil.txt",
    "evil\0.txt",
    "CON",
    "",
    "marginals/",
    "\u202etxt.live",
    f"{STAMP}plan.toml/x",
    "a" * 5000,
)


def listed(name: str, blob: bytes) -> bytes:
    """The bundle with one more file, which its manifest lists."""
    from core.releases import digest

    members = unzipped(seeds.bundle())
    manifest = json.loads(members[MANIFEST])
    manifest["files"][name] = {"sha256": digest(blob), "bytes": len(blob), "about": "x"}
    return zipped({**members, MANIFEST: json.dumps(manifest).encode(), name: blob})


def refused(data: bytes) -> BundleError:
    with pytest.raises(BundleError) as caught:
        verify(data)
    check_message(caught.value, confidential=False)
    return caught.value


def test_the_honest_bundle_passes():
    assert verify(seeds.bundle()).simulated


@pytest.mark.parametrize("name", PATHS, ids=repr)
def test_no_path_leads_out_of_a_bundle(name, home):
    refused(listed(name, b"evil"))
    refused(zipped({**unzipped(seeds.bundle()), name: b"evil"}))
    assert not list(home.rglob("evil*"))


def test_a_symbolic_link_is_a_file_like_any_other(home):
    members = unzipped(seeds.bundle())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, blob in members.items():
            entry = zipfile.ZipInfo(name)
            if name.endswith("ledger.json"):
                entry.external_attr = (stat.S_IFLNK | 0o777) << 16
                blob = b"/etc/passwd"  # noqa: PLW2901
            archive.writestr(entry, blob)
    assert "ledger.json was changed" in str(refused(buffer.getvalue()))


def _twice() -> bytes:
    buffer = io.BytesIO(seeds.bundle())
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(f"{STAMP}ledger.json", b"{}")
    return buffer.getvalue()


def _overlapping() -> bytes:
    """Two entries of the directory that share the same packed bytes."""
    members = {"a": bytes(100_000), "b": b"x"}
    data = bytearray(zipped(members))
    first = data.find(b"PK\x01\x02")
    second = data.find(b"PK\x01\x02", first + 4)
    # Sizes, checksum and place of the first one; only the name differs.
    data[second + 16 : second + 28] = data[first + 16 : first + 28]
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    data += bytes(0)
    entries = [bytes(data[first : first + 47])] * 40
    body = bytes(data[:first])
    directory = b"".join(entries)
    end = b"PK\x05\x06" + bytes(4) + (40).to_bytes(2, "little") * 2
    end += len(directory).to_bytes(4, "little") + len(body).to_bytes(4, "little") + bytes(2)
    return body + directory + end


def _crowded() -> bytes:
    return zipped({f"{number}": b"" for number in range(MOST_MEMBERS + 1)})


TRICKS: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "cannot be opened"),
    "an empty archive": (lambda: zipped({}), "no manifest.json"),
    "a truncated archive": (lambda: seeds.bundle()[:-50], "cannot be opened"),
    "names twice": (_twice, "repeated names"),
    "too many files": (_crowded, "more than 10,000 files"),
    "overlapping files": (_overlapping, "overlap"),
    "another method": (
        lambda: zipped(unzipped(seeds.bundle()), compression=zipfile.ZIP_BZIP2),
        "packed by a method",
    ),
    "a bomb in a document": (
        lambda: zipped({**unzipped(seeds.bundle()), f"{STAMP}statement.md": bytes(60_000_000)}),
        "more than 150 times its size",
    ),
    "a bundle in a bundle": (
        lambda: zipped({**unzipped(seeds.bundle()), f"{STAMP}statement.md": seeds.bundle()}),
        "was changed",
    ),
    "a deep manifest": (
        lambda: zipped({**unzipped(seeds.bundle()), MANIFEST: b"[" * 100_000}),
        "damaged",
    ),
    "a manifest that is a list": (
        lambda: zipped({**unzipped(seeds.bundle()), MANIFEST: b"[]"}),
        "damaged",
    ),
    "a manifest of endless numbers": (
        lambda: zipped({**unzipped(seeds.bundle()), MANIFEST: b"[" + b"9" * 5000 + b"]"}),
        "damaged",
    ),
    "a manifest that is not UTF-8": (
        lambda: zipped({**unzipped(seeds.bundle()), MANIFEST: b"\xff{}"}),
        "damaged",
    ),
}


@pytest.mark.parametrize("trick", sorted(TRICKS))
def test_tricks_with_archives_are_named(trick):
    make, words = TRICKS[trick]
    assert words in str(refused(make()))


def test_an_honest_archive_and_one_that_lies_about_a_size():
    members = {"a": b"x" * 1000}
    with open_archive(zipped(members), "t", 1000) as archive:
        assert archive.read("a") == members["a"]
    refusal = pytest.raises(ReadingError, match="unpacked, it is larger than 999")
    with refusal, open_archive(zipped(members), "t", 999):
        pass
    data = bytearray(zipped(members))
    place = data.find(b"PK\x01\x02")
    data[place + 24 : place + 28] = (10).to_bytes(4, "little")  # ten bytes, it says
    with open_archive(bytes(data), "t", 999) as archive, pytest.raises(zipfile.BadZipFile):
        archive.read("a")


# -- what lies deeper --------------------------------------------------------------------------


def test_a_release_that_is_a_bomb_is_refused_before_it_is_unpacked():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.zeros(4, np.uint8), bomb=np.zeros(30_000_000, np.uint8))
    assert len(buffer.getvalue()) < 100_000
    with pytest.raises(JustitiaError, match="damaged"):
        unpack_bytes(buffer.getvalue(), "TreeRelease")


def test_an_array_that_promises_more_than_it_holds():
    header = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(117)
        + b"\n"
    )
    with pytest.raises(JustitiaError, match="damaged"):
        TreeRelease.from_bytes(zipped({"header.npy": header, "a.npy": header}))


def test_pickled_arrays_are_never_loaded():
    buffer = io.BytesIO()
    np.savez(buffer, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(JustitiaError, match="damaged"):
        TreeRelease.from_bytes(buffer.getvalue())


def test_no_small_bundle_asks_for_any_number_of_rows():
    from core.plan import parse_plan

    files = dict(seeds.derived().files)
    plan = parse_plan(files["plan.toml"].decode())
    many = replace(plan, synthetic=replace(plan.synthetic, rows=100_000_000))
    files["plan.toml"] = many.to_toml().encode()
    assert "fewer rows than its plan" in str(refused(bundle_bytes(files, True)))


def test_tables_of_other_columns_are_named():
    files = dict(seeds.derived().files)
    release = TreeRelease.from_bytes(files["release.npz"])
    (first, *others) = release.one_way
    shorter = replace(first, values=first.values[:-1])
    elsewhere = replace(first, clique=others[0].clique)
    for table, words in ((shorter, "another shape"), (elsewhere, "not those of its columns")):
        lie = replace(release, one_way=(table, *others))
        files["release.npz"] = lie.to_bytes()
        assert words in str(refused(bundle_bytes(files, True)))


def test_the_command_line_tells_it_in_one_line(home, capsys):
    from core.__main__ import main

    for trick, (make, words) in sorted(TRICKS.items()):
        path = home / "bundle.zip"
        path.write_bytes(make())
        assert main(["verify", str(path)]) == 2, trick
        told = capsys.readouterr()
        assert told.out == ""
        assert len(told.err.splitlines()) == 1
        assert words in told.err
    assert {path.name for path in home.iterdir()} <= {"bundle.zip", "home", "work"}
