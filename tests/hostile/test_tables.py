"""Tables from strangers: read right, or refused in one sentence that quotes no cell."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable

import pyarrow as pa
import pytest

from core.errors import JustitiaError, ReadingError
from core.private.coding import encode
from core.private.raw import Limits
from core.private.reading import HeaderError, RawTable, read_table
from core.private.suggestions import suggest_schema
from core.schema import Column, Kind, Schema
from tests.core.private.files import excel, parquet
from tests.hostile import corpus, seeds
from tests.hostile.mutation import unzipped, zipped
from tests.hostile.targets import chain, check_message, read_rows

SHEET = "xl/worksheets/sheet1.xml"
NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def refusal(data: bytes, name: str, **settings: object) -> ReadingError:
    with pytest.raises(ReadingError) as caught:
        read_table(data, name=name, **settings)
    check_message(caught.value, confidential=True)
    for error in chain(caught.value):
        assert "canary" not in repr(error)
    return caught.value


def sheet(xml: str) -> bytes:
    """A workbook with this sheet."""
    members = unzipped(excel([["a"], [1]]))
    return zipped({**members, SHEET: xml.encode()})


def rows(xml: str) -> str:
    return f"<worksheet {NAMESPACE}><sheetData>{xml}</sheetData></worksheet>"


def _no_text() -> bytes:
    good = parquet(pa.table({"a": ["canary-1", "canary-2"] * 3}))
    return good.replace(b"canary-1", b"\xff\xfenary-1")


def _contradicting() -> bytes:
    good = seeds.parquet_files()[1]
    optional, required = b"\x25\x02\x18\x06person", b"\x25\x00\x18\x06person"
    assert good.count(optional) == 1
    return good.replace(optional, required)


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
REFUSED: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "invalid UTF-16": ("t.csv", lambda: b"\xff\xfea\x00\x00\xd8\n\x00c", "does not fit the enc"),
    "UTF-16 without a mark": ("t.csv", lambda: "a,b\n1,2\n".encode("utf-16-le"), "utf-16-le"),
    "NUL in a cell": ("t.csv", lambda: b"a,b\ncanary\0,2\n", "line 2 holds NUL"),
    "NUL in the header": ("t.csv", lambda: b"a\0,b\n1,2\n", "line 1 holds NUL"),
    "short row": ("t.csv", lambda: b"a,b,c\n1,2,3\ncanary,2\n", "line 3 has 2 fields"),
    "long row": ("t.csv", lambda: b"a,b\n1,2\n1,2,canary\n", "line 3 has 3 fields"),
    "10,000 columns": (
        "t.csv",
        lambda: b",".join(b"c%d" % i for i in range(10_000)) + b"\n" + b"1," * 9_999 + b"1\n",
        "10000 columns are more than 500",
    ),
    "10,000 unnamed columns": ("t.csv", lambda: b"," * 9_999 + b"\n" + b"1," * 9_999, "10000 col"),
    "a million quotation marks": (
        "t.csv",
        lambda: b"a,b\n" + b'"' * 1_000_000,
        "longer than 131,072 characters",
    ),
    "a million empty cells": ("t.csv", lambda: b"a,b\n" + b'"",' * 1_000_000, "1000001 fields"),
    "an unclosed quotation mark": (
        "t.csv",
        lambda: b'a,b\n1,2\n"canary,3\n4,5\n',
        "cannot be split",
    ),
    "text after a quoted cell": ("t.csv", lambda: b'a,b\n"canary"x,2\n', "cannot be split"),
    "a single line of 50 MB": ("t.csv", lambda: b"canary," * 7_500_000, "10,000,000 characters"),
    "a header name of 100,000 letters": (
        "t.csv",
        lambda: b"x" * 100_000 + b",b\n1,2\n",
        "name of column 1 is longer than 200",
    ),
    "long names that are also repeated": (
        "t.csv",
        lambda: b",".join([b"x" * 100_000] * 50) + b"\n" + b"1," * 49 + b"1\n",
        "longer than 200",
    ),
    "500 repeated names": ("t.csv", lambda: b",".join([b"n" * 199] * 500) + b"\n1\n", "500 times"),
    "blanks only": ("t.csv", lambda: b" \n\t\n" * 1000, "the file is empty"),
    "a mark only": ("t.csv", lambda: b"\xef\xbb\xbf", "empty"),
    "a gzip archive": ("t.csv", lambda: b"\x1f\x8b\x08canary", "gzip"),
    "a pickle": ("t.csv", lambda: b"\x80\x04\x95canary", "pickle"),
    "a zip of tables": ("t.xlsx", lambda: zipped({"canary.csv": b"a\n1\n"}), "no Excel workbook"),
    "a workbook in a workbook": (
        "t.xlsx",
        lambda: zipped({"xl/workbook.xml": excel([["canary"]])}),
        "damaged",
    ),
    "an encrypted member": ("t.xlsx", lambda: _flagged(excel([["a"], ["canary"]])), "damaged"),
    "a member by another method": (
        "t.xlsx",
        lambda: zipped(unzipped(excel([["a"], [1]])), compression=14),
        "packed by a method",
    ),
    "a truncated workbook": ("t.xlsx", lambda: excel([["a"], ["canary"]])[:-40], "zip file"),
    "billion laughs": (
        "t.xlsx",
        lambda: sheet(
            f'<!DOCTYPE x [<!ENTITY l0 "canary">{LAUGHS}]>'
            + rows('<row><c t="inlineStr"><is><t>&l9;</t></is></c></row>')
        ),
        "declares a document type",
    ),
    "a file of this machine in an entity": (
        "t.xlsx",
        lambda: sheet(
            '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
            + rows('<row><c t="inlineStr"><is><t>&e;</t></is></c></row>')
        ),
        "declares a document type",
    ),
    "deep XML": ("t.xlsx", lambda: sheet(rows("<row>" * 3000 + "</row>" * 3000)), "nested deeper"),
    "a row number of a thousand million": (
        "t.xlsx",
        lambda: sheet(
            rows('<row r="1"><c><v>1</v></c></row><row r="1000000000"><c><v>1</v></c></row>')
        ),
        "larger than 1048576 rows",
    ),
    "a cell in column ZZZ": (
        "t.xlsx",
        lambda: sheet(rows('<row><c r="ZZZ1"><v>1</v></c></row>')),
        "or 500 columns",
    ),
    "a number of 5,000 digits in a sheet": (
        "t.xlsx",
        lambda: sheet(
            rows("<row><c><v>1</v></c></row>" + f"<row><c><v>{'9' * 5000}</v></c></row>")
        ),
        "damaged",
    ),
    "an index beyond the shared texts": (
        "t.xlsx",
        lambda: seeds.with_shared_strings(["canary"], "0 99"),
        "damaged",
    ),
    "a Parquet footer that is too long": ("t.parquet", lambda: _footer(2**31), "damaged"),
    "a Parquet file without its end": (
        "t.parquet",
        lambda: seeds.parquet_files()[0][:-9],
        "damaged",
    ),
    "Parquet texts that are no UTF-8": ("t.parquet", _no_text, "damaged"),
    # Arrow's accessors end the process here: levels that the column's statistics do not have.
    "Parquet statistics that contradict the schema": ("t.parquet", _contradicting, "damaged"),
    "Parquet headers without end": (
        "t.parquet",
        lambda: seeds.parquet_files()[0].replace(b"\x15\x04", b"\x19\x19", 1),
        "damaged",
    ),
    "Parquet types without cells": (
        "t.parquet",
        lambda: parquet(pa.table({"a": [["canary"]], "b": [{"x": 1}]})),
        "'a' (list<",
    ),
    "Parquet without columns": ("t.parquet", lambda: parquet(pa.table({})), ""),
}


def _flagged(data: bytes) -> bytes:
    """Every member marked as encrypted."""
    found = bytearray(data)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = found.find(mark)
        while place >= 0:
            found[place + offset] |= 1
            place = found.find(mark, place + 4)
    return bytes(found)


def _footer(size: int) -> bytes:
    good = seeds.parquet_files()[0]
    return good[:-8] + size.to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_refused_in_one_sentence(case):
    name, make, words = REFUSED[case]
    error = refusal(make(), name)
    assert words in str(error)
    assert str(error).startswith(name)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends_read_right(codec, end):
    text = end.join(("größe,name", "1,Zoë", "2,Łódź" if "utf" in codec else "2,Élan", ""))
    raw = read_table(text.encode(codec), name="t.csv")
    assert raw.names == ("größe", "name")
    assert raw.frame["name"].tolist()[0] == "Zoë"
    assert len(raw.frame) == 2


def test_mixed_line_ends_are_line_ends():
    raw = read_table(b"a,b\r\n1,2\n3,4\r5,6", name="t.csv")
    assert raw.frame.to_numpy().tolist() == [["1", "2"], ["3", "4"], ["5", "6"]]


#: XML has no such letters, and openpyxl would write what starts with "=" as a formula.
NAMES = [
    (name, form)
    for name in (*corpus.PAYLOADS, *corpus.LETTERS)
    for form in ("csv", "parquet", "xlsx")
    if form != "xlsx" or not name.startswith(("=", "a\x1b"))
]


@pytest.mark.parametrize(("name", "form"), NAMES, ids=repr)
def test_any_name_comes_back_letter_for_letter(name, form):
    if form == "csv":
        buffer = io.StringIO(newline="")
        csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([[name, "b"], ["x", "y"]])
        data = buffer.getvalue().encode()
    elif form == "parquet":
        data = parquet(pa.table({name: ["x"], "b": ["y"]}))
    else:
        data = excel([[name, "b"], ["x", "y"]])
    if not name.strip():
        with pytest.raises(HeaderError) as caught:
            read_table(data, name=f"t.{form}")
        assert caught.value.proposal == ("column_1", "b")
        return
    raw = read_table(data, name=f"t.{form}", delimiter=",")
    assert raw.names[1] == "b"
    # XML knows one line end only.
    wanted = name.replace("\r", "\n") if form == "xlsx" else name
    assert raw.names[0].replace("\r", "\n") == wanted.replace("\r", "\n")
    assert raw.frame[raw.names[0]].tolist() == ["x"]
    assert suggest_schema(raw).schema.names == raw.names


def test_names_that_look_alike_stay_apart():
    names = ["é", "e\u0301", "a", "a\u200b", "\ufeffa", "А"]
    data = (",".join(names) + "\n" + ",".join("123456") + "\n").encode()
    raw = read_table(data, name="t.csv", encoding="utf-8")
    assert raw.names == tuple(names)
    with pytest.raises(JustitiaError) as caught:
        read_table(b"x\n1\n", rename=["a", "b"])
    check_message(caught.value, confidential=False)


NUMBERS = {
    "1e308": 1e308,
    "-1e308": -1e308,
    "1e309": math.inf,
    "-1e309": -math.inf,
    "9" * 400: math.inf,
    "1e-400": 0.0,
    "-0.0": 0.0,
    "0x10": None,
    "1_000": None,
    "١٢": None,
    "½": None,
    "nan": None,
}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_extreme_numbers_land_in_a_cell_and_stop_nothing(form):
    texts = list(NUMBERS)
    column = Column("x", Kind.REAL, lower=-10, upper=10, bins=2)
    data = ("x\n" + "\n".join(texts) + "\n").encode() if form == "csv" else b""
    if form == "parquet":
        data = parquet(pa.table({"x": texts}))
    coded = encode(read_table(data, name=f"t.{form}", decimal="."), Schema((column,)))
    for code, number in zip(coded.codes["x"].tolist(), NUMBERS.values(), strict=True):
        near = None if number is None else max(min(number, 10), -10)
        assert code == (column.missing_code if near is None else column.cell_of(near))


def test_a_column_of_mixed_types_is_coded_cell_by_cell():
    mixed = [1, 1.5, "1", True, None, "x", "=1+1", "#DIV/0!", 1e308]
    raw = read_table(excel([["m", "n"], *[[cell, 1] for cell in mixed]]), name="t.xlsx")
    column = Column("m", Kind.CATEGORICAL, categories=("1", "x", "True"))
    codes = encode(raw, Schema((column,))).codes["m"].tolist()
    other, missing = column.other_code, column.missing_code
    # A formula that was never computed has no value.
    assert codes == [0, other, 0, 2, missing, 1, missing, other, other]


def test_bounds_as_wide_as_exact_arithmetic_can_be_suggested():
    data = b"n,r\n9007199254740993,5e-324\n0,0\n1,1e308\n"
    assert suggest_schema(read_table(data, name="t.csv")).schema.names == ("n", "r")


def test_limits_are_kept_before_anything_is_parsed(monkeypatch):
    import core.private.csv_reading
    import core.private.reading

    def parsed(*arguments: object, **settings: object) -> None:
        raise AssertionError("parsed")

    for name in ("read_csv", "read_excel", "read_parquet"):
        monkeypatch.setattr(core.private.reading, name, parsed)
    for name, data in (
        ("t.csv", seeds.csv_files()[0]),
        ("t.parquet", seeds.parquet_files()[0]),
        ("t.xlsx", seeds.workbooks()[0]),
    ):
        error = refusal(data, name, limits=Limits(bytes=10))
        assert "larger than 10 bytes" in str(error)


def test_the_same_table_is_the_same_whatever_the_format():
    codes = []
    for name, data in (
        ("t.csv", seeds.csv_files()[0]),
        ("t.parquet", seeds.parquet_files()[0]),
        ("t.xlsx", seeds.workbooks()[0]),
    ):
        raw = read_table(data, name=name, decimal="." if name == "t.csv" else None)
        assert isinstance(raw, RawTable)
        coded = encode(raw, seeds.SCHEMA)
        codes.append({key: cells.tolist() for key, cells in coded.codes.items()})
    assert codes[0] == codes[1] == codes[2]


def test_every_seed_is_read():
    for name, files in (
        ("t.csv", seeds.csv_files()),
        ("t.parquet", seeds.parquet_files()),
        ("t.xlsx", seeds.workbooks()),
    ):
        for data in files:
            assert read_rows(name)(data).names[0] == "person"
