"""Files to raw tables: what is read, what is refused in one sentence, and what is never told."""

import contextlib
import csv
import io
from datetime import datetime

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.errors import ReadingError
from core.private.reading import HeaderError, Limits, RawTable, preview, proposed_names, read_table
from tests.core.private.files import cells, excel, parquet, refused
from tests.core.schema_strategies import LABELS, QUICK, TEXTS


class TestCsv:
    def test_cells_are_kept_exactly(self):
        text = 'a,b\n007, x \nNone,nan\n1e5,"say ""hi"""\n"two\nlines",\n'
        assert cells(read_table(text.encode())) == [
            ["a", "b"],
            ["007", " x "],
            ["None", "nan"],
            ["1e5", 'say "hi"'],
            ["two\nlines", ""],
        ]
        assert set(map(str, read_table(text.encode()).frame.dtypes)) == {"str"}

    @pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_delimiters_and_line_ends_are_found(self, sign, end):
        text = end.join([f"a{sign}b", f'1{sign}"x{sign}y"', f"2{sign}z", ""])
        raw = read_table(text.encode())
        assert cells(raw) == [["a", "b"], ["1", f"x{sign}y"], ["2", "z"]]
        assert raw.report.delimiter == sign
        assert {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}[sign] in raw.report.notes[
            0
        ]

    def test_the_header_decides_whatever_the_rows_hold(self):
        raw = read_table(b"name;income\nx, y, z;1\na, b;2\n")
        assert raw.names == ("name", "income")
        assert raw.report.guessed == ()

    def test_several_candidates_in_the_header_are_settled_by_the_rows_and_said(self):
        raw = read_table(b"weight (kg, net);height (m, bare)\n1;2\n3;4\n")
        assert raw.names == ("weight (kg, net)", "height (m, bare)")
        assert "delimiter" in raw.report.guessed

    def test_a_declared_delimiter_wins(self):
        assert read_table(b"a,b;c\n1,2;3\n", delimiter="semicolon").names == ("a,b", "c")
        assert read_table(b"a.b\n1.2\n", delimiter=".").names == ("a", "b")
        refused(b"a,b\n1,2\n", "one character", delimiter="::")
        refused(b"a,b\n1,2\n", "one character", delimiter='"')

    @pytest.mark.parametrize(
        ("codec", "report"),
        [
            ("utf-8", "utf-8"),
            ("utf-8-sig", "utf-8-sig"),
            ("utf-16", "utf-16"),
            ("utf-32", "utf-32"),
            ("cp1252", "cp1252"),
        ],
    )
    def test_encodings(self, codec, report):
        raw = read_table("größe,stadt\nklein,Besançon\n".encode(codec))
        assert cells(raw) == [["größe", "stadt"], ["klein", "Besançon"]]
        assert raw.report.encoding == report
        assert ("encoding" in raw.report.guessed) == (codec == "cp1252")

    def test_the_last_resort_is_stated(self):
        raw = read_table(b"a\n\x81\xe4\n")
        assert raw.frame["a"].tolist() == ["\x81ä"]
        assert "guess" in raw.report.notes[0]

    def test_declared_encodings(self):
        raw = read_table("stadt\nŁódź\n".encode("cp1250"), encoding="cp1250")
        assert raw.frame["stadt"].tolist() == ["Łódź"]
        assert read_table("\ufeffa\n1\n".encode(), encoding="utf-8").names == ("a",)
        refused(b"a\n1\n", "encoding 'klingon' is unknown", encoding="klingon")
        refused(b"a\n1\n", "is unknown", encoding="base64")
        refused(b"a\nx\n\xff\n", "does not fit the encoding utf-8", encoding="utf-8")

    @pytest.mark.parametrize(
        ("text", "decimal", "guessed"),
        [
            ("a;b\n1,5;2\n", ",", True),
            ("a;b\n1.234,5;2\n", ",", True),
            ("a;b\n1,234;2\n", ",", True),
            ("a\tb\n1,234\t2\n", ".", True),
            ("a;b\n1.5;2\n", ".", False),
            ("a;b\n1,5;2.5\n", ".", True),
            ("a;b\n1;2\n", ".", False),
            ("a;b\nx, y;31.12.2024\n", ".", False),
            ('a,b\n"1,5",2\n', ",", True),
        ],
    )
    def test_decimal_sign(self, text, decimal, guessed):
        report = read_table(text.encode()).report
        assert report.decimal == decimal
        assert ("decimal" in report.guessed) == guessed
        assert guessed == (len(report.notes) > 1)

    def test_a_declared_decimal_sign_wins(self):
        report = read_table(b"a;b\n1,5;2\n", decimal=".").report
        assert (report.decimal, report.guessed) == (".", ())
        refused(b"a;b\n1,5;2\n", "point or a comma", decimal="'")

    @pytest.mark.parametrize(
        ("text", "line", "fields"),
        [
            ("a,b\n1,2\n3\n", 3, "1 field where"),
            ("a,b\n1,2,3\n", 2, "3 fields where"),
            ('a,b\n"x\ny",2\n\nsecret,secret,secret\n', 5, "3 fields where"),
        ],
    )
    def test_ragged_rows_are_named_by_line(self, text, line, fields):
        error = refused(text.encode(), f"line {line} has {fields} the header has 2")
        assert "secret" not in str(error)

    def test_quotation_marks_must_be_closed(self):
        error = refused(b'a,b\n1,2\n"secret,2\n3,4\n', "starts in line 3 .* inside a quoted cell")
        assert "secret" not in str(error)
        refused(b'a,b\n"x"y,2\n', "line 2 .* closing quotation mark")
        refused(b"a,b\n" + b"x" * 200_000 + b",2\n", "line 2 .* longer than 131,072")

    def test_nul_bytes(self):
        refused(b"a,b\n1,2\n3,\x004\n", "line 3 holds NUL")
        refused("a,b\n1,2\n".encode("utf-16-le"), "line 1 holds NUL")

    def test_blank_lines(self):
        assert len(read_table(b"\na,b\n1,2\n\n  \n3,4\n\n").frame) == 2
        assert read_table(b'a\n1\n\n2\n""\n\n').frame["a"].tolist() == ["1", "", "2", ""]

    @pytest.mark.parametrize("data", [b"", b"\n\n", b"   \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
    def test_empty_files(self, data):
        refused(data, "the file is empty")

    @pytest.mark.parametrize("data", [b"a,b", b"a,b\n", b"a,b\r\n\r\n"])
    def test_a_header_only(self, data):
        refused(data, "a header but no row")

    def test_formula_guards(self):
        data = b"\xef\xbb\xbf'=a,b\n'-5,'tis\n''=x,-3\n"
        raw = read_table(data)
        assert cells(raw) == [["=a", "b"], ["-5", "'tis"], ["'=x", "-3"]]
        assert "formula guard" in raw.report.notes[1]
        assert cells(read_table(data[3:])) == [["'=a", "b"], ["'-5", "'tis"], ["''=x", "-3"]]
        assert read_table(data, formula_guard=False).names == ("'=a", "b")

    def test_many_rows_in_several_chunks(self):
        raw = read_table(b"a,b\n" + b"".join(b"%d,x\n" % i for i in range(140_000)))
        assert raw.frame["a"].tolist() == [str(i) for i in range(140_000)]

    @QUICK
    @given(st.data())
    def test_whatever_a_csv_writer_writes_is_read_back(self, data):
        width = data.draw(st.integers(1, 4))
        row = st.lists(TEXTS, min_size=width, max_size=width)
        rows = data.draw(st.lists(row, min_size=1, max_size=5))
        names = data.draw(st.lists(LABELS, min_size=width, max_size=width, unique=True))
        sign = data.draw(st.sampled_from(",;\t|"))
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer, delimiter=sign, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
        writer.writerows([names, *rows])
        raw = read_table(
            buffer.getvalue().encode(), delimiter=sign, encoding="utf-8", formula_guard=False
        )
        if not names[0].startswith("\ufeff"):
            assert cells(raw) == [names, *rows]


class TestHeaders:  # F-01
    tabs = b"age\tage\t\tcity\n34\t35\tx\tUlm\n51\t50\ty\tJena\n"

    @pytest.mark.parametrize("data", [tabs, tabs.replace(b"\t", b",")])
    def test_one_message_lists_everything_and_offers_names(self, data):
        error = refused(data, "'age' appears twice, column 3 without a name", HeaderError)
        assert error.proposal == ("age", "age_2", "column_3", "city")
        assert "age, age_2, column_3, city" in str(error)
        for rename in (error.proposal, {"age_2": "age_2", "column_3": "column_3"}):
            raw = read_table(data, rename=rename)
            assert raw.names == error.proposal
            assert raw.frame["column_3"].tolist() == ["x", "y"]

    def test_the_same_names_are_offered_again(self):
        first, second = (refused(self.tabs, "twice", HeaderError).proposal for _ in range(2))
        assert first == second

    def test_names_may_be_edited(self):
        raw = read_table(self.tabs, rename={"age_2": "age next year", "column_3": "group"})
        assert raw.names == ("age", "age next year", "group", "city")
        assert read_table(b"a,b\n1,2\n", rename={"a": "x"}).names == ("x", "b")

    def test_renaming_must_settle_everything_and_fit(self):
        refused(self.tabs, "twice", HeaderError, rename={"age_2": "x"})
        refused(self.tabs, "'city' appears twice", HeaderError, rename=["a", "b", "city", "city"])
        refused(self.tabs, "no column 'town'", rename={"town": "x"})
        refused(self.tabs, "one name for each of the 4", rename=["a"])

    def test_the_same_in_parquet_and_excel(self):
        table = pa.table([[1], [2], [3]], names=["age", "age", " "])
        error = refused(parquet(table), "twice, column 3 without", HeaderError, name="p.parquet")
        assert read_table(parquet(table), rename=error.proposal).names == error.proposal
        data = excel([["age", "age", None], [1, 2, 3]])
        error = refused(data, "twice, column 3 without", HeaderError, name="p.xlsx")
        assert error.proposal == ("age", "age_2", "column_3")
        assert read_table(data, rename=error.proposal).names == error.proposal

    def test_names_come_letter_for_letter(self):
        names = ["a b", "A b", "a_b", "a.b", 'a"b', "index", "level_0", " x "]
        buffer = io.StringIO()
        csv.writer(buffer).writerows([names, list("12345678")])
        assert read_table(buffer.getvalue().encode()).names == tuple(names)

    @QUICK
    @given(st.lists(st.sampled_from(["", " ", "a", "a_2", "a_3", "column_1", "column_2"])))
    def test_proposals_are_unique_and_leave_good_names_alone(self, names):
        proposal = proposed_names(names)
        assert len(set(proposal)) == len(names)
        assert all(name.strip() for name in proposal)
        for position, name in enumerate(names):
            if name.strip() and names.index(name) == position:
                assert proposal[position] == name

    def test_limits(self):
        refused(b"x" * 300 + b"\n1\n", "name of column 1 is longer than 200")
        wide = b",".join(b"c%d" % i for i in range(501))
        refused(wide + b"\n" + wide + b"\n", "501 columns are more than 500")
        refused(b"a\n1\n2\n3\n", "more than 2 rows", limits=Limits(rows=2))
        refused(b"a\n1\n2\n3\n", "larger than 5 bytes", limits=Limits(bytes=5))


class TestDisguises:
    png = b"\x89PNG\r\n\x1a\n" + bytes(20)

    @pytest.mark.parametrize(
        ("name", "data", "words"),
        [
            ("people.csv", excel([["a"], [1]]), "this is an Excel workbook, no CSV file"),
            ("people.csv", png, r"this is a picture \(PNG\), no CSV file"),
            ("people.csv", b"\x1f\x8b\x08....", "gzip archive"),
            ("people.txt", b"PK\x03\x04....", "ZIP archive"),
            ("people.csv", parquet(pa.table({"a": [1]})), "a Parquet file, no CSV file"),
            ("people.parquet", b"a,b\n1,2\n", "plain text, no Parquet file"),
            ("people.xlsx", b"a,b\n1,2\n", "plain text, no Excel workbook"),
            ("people.xlsx", png, "picture"),
            ("people.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1....", "old Office document"),
            ("people", b"SQLite format 3\x00....", "SQLite"),
            ("people.pkl", b"\x80\x04\x95....", "pickle"),
        ],
    )
    def test_renamed_files_get_one_plain_sentence(self, name, data, words):
        refused(data, words, name=name)

    def test_without_an_ending_the_content_decides(self):
        assert read_table(excel([["a"], [1]])).report.format == "excel"
        assert read_table(parquet(pa.table({"a": [1]}))).report.format == "parquet"
        assert read_table(b"a\n1\n").report.format == "csv"

    def test_paths(self, tmp_path):
        path = tmp_path / "people.csv"
        path.write_bytes(b"a\n1\n")
        assert read_table(path).name == "people.csv"
        assert read_table(str(path), name="shown.csv").name == "shown.csv"
        with pytest.raises(ReadingError, match=r"none\.csv: there is no such file"):
            read_table(tmp_path / "none.csv")
        with pytest.raises(ReadingError, match="folder"):
            read_table(tmp_path)
        with pytest.raises(ReadingError, match="larger than 2 bytes"):
            read_table(path, limits=Limits(bytes=2))


class TestTellsNothing:
    def test_no_repr_shows_a_value(self):
        raw = read_table(b"name\nsecret\n", name="x.csv")
        assert "secret" not in repr(raw) + str(raw) + repr(raw.report)
        assert repr(raw) == "RawTable('x.csv', 1 columns, rows confidential)"

    def test_errors_carry_no_value_in_their_causes(self):
        for data in (b'a,b\n"secret,2\n', b"a,b\nsecret\n", b"a\nsecret\n\0"):
            with pytest.raises(ReadingError) as caught:
                read_table(data)
            error = caught.value
            while error is not None:
                assert "secret" not in str(error)
                error = error.__cause__

    def test_preview_is_a_copy(self):
        raw = read_table(b"a\n" + b"1\n" * 50)
        shown = preview(raw)
        assert len(shown) == 20
        shown.loc[0, "a"] = "changed"
        assert raw.frame.loc[0, "a"] == "1"
        assert len(preview(raw, -5)) == 0


class TestAnyBytes:
    """Fuzzed bytes give a raw table or a reading error, and nothing else."""

    @QUICK
    @given(
        st.binary(max_size=300)
        | st.text(max_size=200).map(lambda text: text.encode("utf-8", "ignore"))
        | st.text("ab,;\t|\"'\n\r 1.0\0é", max_size=200).map(str.encode)
    )
    @example(b"\xff\xfea\x00")
    @example(b"\xff\xfe\x00\x00a")
    @example(b"PK\x03\x04")
    @example(b"PAR1PAR1")
    @example(b'"')
    @example(b"a" * 200_000)
    @example(b"," * 200_000)
    @example(b"a\n1e309\n")
    def test_from_nothing(self, data):
        with contextlib.suppress(ReadingError):
            assert isinstance(read_table(data), RawTable)

    @QUICK
    @given(st.data())
    def test_from_damaged_files(self, data):
        good = data.draw(
            st.sampled_from(
                [GOOD_PARQUET, GOOD_EXCEL, "ä;b\n1,5;x\n".encode("utf-16"), b"a,b\n1,2\n"]
            )
        )
        damaged = bytearray(good)
        for _ in range(data.draw(st.integers(1, 8))):
            damaged[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
        with contextlib.suppress(ReadingError):
            assert isinstance(read_table(bytes(damaged)), RawTable)


GOOD_PARQUET = parquet(
    pa.table(
        {
            "a": ["x", None, "y"],
            "d": pa.array([1, 2, None], pa.timestamp("s", tz="Europe/Berlin")),
            "k": pa.array(["p", "q", "p"]).dictionary_encode(),
        }
    )
)
GOOD_EXCEL = excel([["a", "b"], [1, "x"], [datetime(2024, 1, 1), True]])
