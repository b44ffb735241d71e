import hashlib
import hmac
import os
import stat
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import LedgerError
from core.private import fingerprint as module
from core.private.earlier_fingerprint import earlier_fingerprint, recognised
from core.private.fingerprint import declared_mark, fingerprint, secret
from core.private.ledger import Ledger
from tests.core.private.ledgers import people

KEY = bytes(range(32))
ROOT = Path(__file__).parents[3]
PROPERTY = settings(deadline=None, derandomize=True, max_examples=60)


def mixed(rows=40, seed=0):
    """One column of every dtype that a reader may produce."""
    generator = np.random.default_rng(seed)
    numbers = generator.integers(0, 5, rows)
    frame = pd.DataFrame(
        {
            "integer": numbers,
            "small": numbers.astype("uint8"),
            "real": generator.normal(size=rows),
            "text": np.array(["a", "b", "", "ü人", "a\x1fb"])[numbers],
            "truth": numbers > 2,
            "day": pd.Timestamp("2024-02-29") + pd.to_timedelta(numbers, unit="D"),
            "zoned": (pd.Timestamp("2024-02-29", tz="UTC") + pd.to_timedelta(numbers, unit="h")),
            "span": pd.to_timedelta(numbers, unit="min"),
        }
    )
    frame["level"] = pd.Categorical(frame["text"])
    frame["nullable"] = pd.array([None if n == 0 else int(n) for n in numbers], dtype="Int64")
    frame["object"] = [(None, 1, "x", Decimal("1.5"), date(2024, 1, 1))[n] for n in numbers]
    frame["nested"] = [[1, "a"] if n else {"k": n} for n in numbers]
    frame["raw"] = [b"\x00\xff" * n for n in numbers]
    frame.loc[::7, ["real", "text", "day", "span", "level"]] = None
    return frame


# -- what is ignored -----------------------------------------------------------------------


def test_order_of_rows_and_columns_and_the_index_are_ignored():
    frame = mixed()
    expected = fingerprint(frame, KEY)
    shuffled = frame.sample(frac=1, random_state=3)[sorted(frame.columns, reverse=True)]
    assert fingerprint(shuffled, KEY) == expected
    assert fingerprint(shuffled.reset_index(drop=True), KEY) == expected
    assert len(expected) == 64


@PROPERTY
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=4), st.booleans()),
            st.one_of(st.none(), st.decimals(), st.dates(), st.binary(max_size=3)),
        ),
        min_size=1,
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_any_values_in_any_order(rows, random):
    def table(values, names):
        columns = {name: [row["ab".index(name)] for row in values] for name in names}
        return pd.DataFrame({n: pd.Series(c, dtype=object) for n, c in columns.items()})

    again = list(rows)
    random.shuffle(again)
    assert fingerprint(table(rows, "ab"), KEY) == fingerprint(table(again, "ba"), KEY)
    assert fingerprint(table(rows, "ab"), KEY) != fingerprint(table([*rows, rows[0]], "ab"), KEY)


SAME = [
    ([1, 2, 2**53], [1.0, 2.0, 2.0**53]),
    ([1, 2], [Decimal("1.00"), Decimal("2E0")]),
    ([1, 2], pd.array([1, 2], dtype="Int8")),
    ([0.0], [-0.0]),
    ([0.1, 1e-7, 1e300], [Decimal("0.10"), Decimal("1e-7"), Decimal("1e300")]),
    (["a", None], ["a", np.nan]),
    (["a", None], pd.array(["a", pd.NA], dtype="string")),
    (["a", "b"], pd.Categorical(["a", "b"], categories=["b", "a", "c"])),
    ([None, None], [np.nan, pd.NaT]),
    ([float("nan")], [Decimal("NaN")]),
    ([True, False], pd.array([True, False], dtype="boolean")),
    ([date(2024, 1, 2)], [datetime(2024, 1, 2)]),
    ([date(2024, 1, 2)], pd.to_datetime(["2024-01-02"])),
    ([date(2024, 1, 2)], np.array(["2024-01-02"], dtype="datetime64[s]")),
    ([np.datetime64("2024-01-02"), None], [date(2024, 1, 2), np.datetime64("NaT")]),
    (
        [datetime(2024, 1, 2, tzinfo=UTC)],
        [datetime(2024, 1, 2, 3, tzinfo=timezone(timedelta(hours=3)))],
    ),
    ([timedelta(hours=1)], pd.to_timedelta(["1h"])),
    ([timedelta(hours=1), None], [np.timedelta64(60, "m"), np.timedelta64("NaT")]),
    ([[1, 2]], [np.array([1, 2])]),
    ([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=lambda value: str(value)[:30])
def test_one_value_stored_in_two_ways_is_one_value(one, other):
    tables = [pd.DataFrame({"x": column}) for column in (one, other)]
    tables.append(tables[0].astype(object))
    assert len({fingerprint(table, KEY) for table in tables}) == 1


# -- what counts ---------------------------------------------------------------------------

DIFFERENT = [
    ([1], ["1"]),
    ([1], [True]),
    ([0], [False]),
    ([1], [1.0000000000000002]),
    ([2**53], [2**53 + 1]),
    ([Decimal("1.0000000000000000000000000000000001")], [1]),
    (["a"], ["A"]),
    (["a"], ["a "]),
    ([""], [None]),
    (["nan"], [None]),
    (["None"], [None]),
    (["m"], [None]),
    ([0], [None]),
    (["2024-01-02"], [date(2024, 1, 2)]),
    ([datetime(2024, 1, 2)], [datetime(2024, 1, 2, tzinfo=UTC)]),
    ([date(2024, 1, 2)], [datetime(2024, 1, 2, 0, 0, 0, 1)]),
    ([b"a"], ["a"]),
    ([b"a"], ["61"]),
    ([float("inf")], [float("-inf")]),
    ([["a", "b"]], [["a, b"]]),
    ([[1, 2]], [[2, 1]]),
    ([timedelta(0)], [0]),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=lambda value: str(value)[:30])
def test_different_values_differ(one, other):
    tables = [pd.DataFrame({"x": pd.Series(c, dtype=object)}) for c in (one, other)]
    assert fingerprint(tables[0], KEY) != fingerprint(tables[1], KEY)


def test_every_single_cell_counts():
    frame = mixed(8).astype(object)
    seen = {fingerprint(frame, KEY)}
    for row in range(len(frame)):
        for column in range(frame.shape[1]):
            changed = frame.copy()
            changed.iat[row, column] = "changed"
            seen.add(fingerprint(changed, KEY))
    assert len(seen) == 1 + frame.size


@pytest.mark.parametrize("column", list(mixed().columns))
def test_a_value_of_every_dtype_counts(column):
    frame = mixed()[[column]]
    distinct = frame.loc[~frame[column].map(repr).duplicated()]
    assert len({fingerprint(distinct.iloc[[row]], KEY) for row in range(len(distinct))}) == len(
        distinct
    )


def test_structure_counts():
    base = pd.DataFrame({"a": ["x", "y"], "b": ["y", "x"]})
    others = [
        base.rename(columns={"a": "c"}),
        base.rename(columns={"a": "b", "b": "a"}).assign(a=["y", "y"]),
        base.assign(b=["x", "y"]),  # the same columns, paired otherwise
        pd.concat([base, base]),
        base.iloc[:1],
        base.iloc[:0],
        base[["a"]],
        base[[]],
        pd.DataFrame({"a": ["x\x1fsy", "y"], "b": ["", "x"]}),
        pd.DataFrame({"a": ["x\\u", "y"], "b": ["y", "x"]}),
        pd.DataFrame({"a": ["x\x1f", "y"], "b": ["y", "x"]}),
        pd.DataFrame(),
        pd.DataFrame(index=range(3)),
    ]
    assert len({fingerprint(table, KEY) for table in [base, *others]}) == 1 + len(others)
    assert fingerprint(base, KEY) != fingerprint(base, KEY[::-1])


def test_names_that_are_no_texts_and_repeated_names():
    frame = pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=[2024, "a", "a"])
    assert fingerprint(frame, KEY) == fingerprint(frame.iloc[::-1], KEY)
    assert fingerprint(frame, KEY) != fingerprint(frame.set_axis(["2024", "a", "a"], axis=1), KEY)
    surrogate = pd.DataFrame({"a": pd.Series(["\ud800"], dtype=object)})
    assert fingerprint(surrogate, KEY)


def scrambled(number):
    """SplitMix64's finaliser in Python's own integers."""
    mask = 2**64 - 1
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & mask
    number = (number ^ number >> 27) * 0x94D049BB133111EB & mask
    return number ^ number >> 31


def test_the_construction_written_out():
    """Oracle: sums of scrambled sums of HMACs under an HMAC, by hand, without arrays."""
    frame = pd.DataFrame({"b": ["x", "y", "x"], "a": [1, 2, 1]})
    lanes = [0, 0, 0, 0]
    for row in ("n1", "sx"), ("n2", "sy"), ("n1", "sx"):
        cells = [f"{name}\x1f0\x1f{cell}" for name, cell in zip(("sa", "sb"), row, strict=True)]
        digests = [hmac.digest(KEY, text.encode(), "sha256") for text in ("row", *cells)]
        words = [
            sum(int.from_bytes(digest[8 * lane : 8 * lane + 8], "little") for digest in digests)
            for lane in range(4)
        ]
        for lane in range(4):
            word, other = words[lane] % 2**64, words[lane - 1] % 2**64
            turned = (other << 31 | other >> 33) % 2**64
            lanes[lane] += scrambled(word ^ turned)
    sums = b"".join((lane % 2**64).to_bytes(8, "little") for lane in lanes)
    whole = b"sa\x1f0\x1fsb\x1f0" + b"\x1e2\x1e3\x1e" + sums
    assert fingerprint(frame, KEY) == hmac.new(KEY, whole, hashlib.sha256).hexdigest()


def test_a_declared_mark_is_keyed_and_keeps_its_words_apart():
    marks = {
        declared_mark(KEY, "warehouse", "people", "2026"),
        declared_mark(KEY, "warehouse", "people", "2027"),
        declared_mark(KEY, "warehouse\x1fpeople", "2026"),
        declared_mark(KEY, "warehouse", "people"),
        declared_mark(KEY[::-1], "warehouse", "people", "2026"),
    }
    assert len(marks) == 5
    assert {len(mark) for mark in marks} == {64}


def test_chunks_do_not_show(monkeypatch):
    frame = mixed(50)
    whole = fingerprint(frame, KEY)
    monkeypatch.setattr(module, "CHUNK_ROWS", 7)
    assert fingerprint(frame, KEY) == whole


def test_fifty_thousand_rows_take_about_a_third_of_a_second():
    generator = np.random.default_rng(0)
    rows = 50_000
    columns = {f"real {i}": generator.normal(size=rows) for i in range(5)}
    columns |= {f"integer {i}": generator.integers(0, 90, rows) for i in range(5)}
    columns |= {f"text {i}": generator.choice(["a", "bb", "c"], rows) for i in range(5)}
    frame = pd.DataFrame(columns)
    begin = time.process_time()
    fingerprint(frame, KEY)
    assert time.process_time() - begin < 3  # measured 0.35; slack for a busy machine


# -- the secret ----------------------------------------------------------------------------


def test_the_secret_lies_beside_the_ledger_and_stays(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    key = secret(Ledger(url))
    file = tmp_path / "ledger.sqlite.secret"
    assert len(key) == 32
    assert file.exists()
    assert secret(Ledger(url)) == key
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".secret")] == []
    other = Ledger(f"sqlite:///{tmp_path / 'other.sqlite'}")
    assert secret(other) != key


def test_a_ledger_in_memory_keeps_its_secret_to_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    one, two = Ledger("sqlite://"), Ledger("sqlite://")
    assert secret(one) == secret(one)
    assert len({secret(one), secret(two)}) == 2
    assert not (tmp_path / "home").exists()


class _ServerLedger:
    """A ledger on a server: no file of its own, the secret in the home folder."""

    def __init__(self, file):
        self.secret_file = file

    def knows_tables(self):
        return False


def test_the_secret_of_a_server_ledger_makes_its_folder(tmp_path):
    file = tmp_path / "home" / "justitia.secret"
    key = secret(_ServerLedger(file))
    assert secret(_ServerLedger(file)) == key
    if os.name == "posix":
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_rotation_forgets_tables_and_keeps_the_ledger(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    first = secret(Ledger(url))
    (tmp_path / "ledger.sqlite.secret").rename(tmp_path / "old")
    second = secret(Ledger(url))
    frame = mixed()
    assert second != first
    assert fingerprint(frame, first) != fingerprint(frame, second)


@pytest.mark.parametrize("content", ["", "zz" * 32, "ab" * 16, "ab" * 33, "ü"])
def test_a_damaged_secret_is_reported_and_left_alone(tmp_path, content):
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    file = tmp_path / "ledger.sqlite.secret"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(LedgerError, match="damaged") as refusal:
        secret(ledger)
    assert file.read_text(encoding="utf-8") == content
    assert content == "" or content not in str(refusal.value)


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_a_restored_secret_gets_its_mode_back(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    key = secret(ledger)
    ledger.secret_file.chmod(0o644)
    assert secret(ledger) == key
    assert stat.S_IMODE(ledger.secret_file.stat().st_mode) == 0o600


def test_a_secret_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LedgerError, match="cannot be"):
        secret(_ServerLedger(tmp_path / "file" / "justitia.secret"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(LedgerError, match="cannot be"):
        secret(_ServerLedger(tmp_path / "folder"))


def test_several_processes_make_one_secret(tmp_path):
    script = (
        "import sys\n"
        "from core.private.fingerprint import secret\n"
        "from core.private.ledger import Ledger\n"
        "ledger = Ledger(sys.argv[1])\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(secret(ledger).hex())\n"
    )
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, url],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    assert [process.stdout.readline() for process in running] == ["ready\n"] * 4
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    told = {process.communicate(timeout=60)[0] for process in running}
    assert len(told) == 1
    assert secret(Ledger(url)).hex() == told.pop().strip()


def test_the_first_of_two_secrets_wins(tmp_path, monkeypatch):
    """The file appears between looking for it and linking ours."""
    file = tmp_path / "justitia.secret"
    link = os.link

    def late(source, target):
        Path(target).write_text("ab" * 32, encoding="ascii")
        link(source, target)

    monkeypatch.setattr(module.os, "link", late)
    assert secret(_ServerLedger(file)) == b"\xab" * 32
    assert [entry.name for entry in tmp_path.iterdir()] == ["justitia.secret"]


# -- tables that version 0.1 knew ------------------------------------------------------------


def test_the_earlier_fingerprint_is_that_of_version_0_1():
    # what version 0.1.0 made of this very table
    known = "6b3829ed8d4c8dd36745c5198df7862cd56dd00e42a28fd5f2e82ce21a1eaa61"
    frame = mixed()
    assert earlier_fingerprint(frame, KEY) == known
    assert earlier_fingerprint(frame.sample(frac=1, random_state=1), KEY) == known
    assert earlier_fingerprint(mixed(seed=1), KEY) != known


def test_a_table_attached_by_version_0_1_keeps_its_id():
    ledger = Ledger("sqlite://")
    for name in ("patients", "others"):
        ledger.create_population(people(name))
    frame = mixed()
    first = ledger.table_id("patients", earlier_fingerprint(frame, KEY))
    elsewhere = ledger.table_id("others", earlier_fingerprint(frame, KEY))
    mark = recognised(ledger, frame, KEY, "patients", "local")
    assert mark == fingerprint(frame, KEY)
    assert ledger.seen_in(mark) == ("others", "patients")
    assert ledger.table_id("patients", mark) == first
    assert ledger.table_id("others", mark) == elsewhere
    assert recognised(ledger, frame, KEY, "patients", "local") == mark
    new = recognised(ledger, mixed(seed=1), KEY, "patients", "local")
    assert ledger.table_id("patients", new) not in (first, elsewhere)
