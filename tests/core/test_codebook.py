"""Codebooks: CSV and JSON in and out, refusals by line and column."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.codebook import MAXIMUM_DEPTH, codebook_bytes, read_codebook, write_codebook
from core.errors import ReadingError, SchemaError
from core.schema import Column, Kind, Missing, Schema

from .schema_strategies import QUICK, schemas

HANDWRITTEN = """\
name;kind;categories;lower;upper;bins;unit;missing;missing_constant;missing_markers;reason
age;Integer;;18;97;4;;;;|?;
job;categorical;yes | no|don't know\\|refused;;;;;constant;no;;
born;date;;1930-01-01;2005-12-31;;Year;;;;

note;text;;;;;;;;;written by hand
"""


class TestCsv:
    def test_a_handwritten_codebook(self):
        schema = read_codebook(HANDWRITTEN.encode())
        assert schema.names == ("age", "job", "born", "note")
        assert schema["age"] == Column(
            "age", Kind.INTEGER, lower=18, upper=97, bins=4, missing_markers=("", "?")
        )
        assert schema["job"].categories == ("yes", "no", "don't know|refused")
        assert schema["job"].missing is Missing.CONSTANT
        assert schema["born"].unit == "year"
        assert schema["note"].reason == "written by hand"

    @pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
    def test_encodings(self, codec):
        text = "name,kind,categories\nGröße,categorical,klein|groß\n"
        schema = read_codebook(text.encode(codec))
        assert schema.names == ("Größe",)
        assert schema["Größe"].categories == ("klein", "groß")

    def test_the_header_may_have_capitals(self):
        schema = read_codebook(b"NAME,Kind, Lower,upper\nage,INTEGER,0,9\n")
        assert schema["age"] == Column("age", Kind.INTEGER, lower=0, upper=9)

    def test_one_entry_with_other_signs_is_escaped(self):
        text = r"name,kind,categories" + "\n" + r'a,categorical,"one\; two\, three\, four"' + "\n"
        schema = read_codebook(text.encode())
        assert schema["a"].categories == ("one; two, three, four",)
        assert read_codebook(codebook_bytes(schema, "csv")) == schema

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("name,kind\nage,number\n", "line 2: column 'age': kind must be one of"),
            ("name,kind,lower,upper\na,text,,\nb,integer,5,1\n", "line 3: column 'b': lower"),
            ("name,kind,bins\na,integer,few\n", "line 2: column 'a': bins must be a whole number"),
            ("name,kind,data_dependent\na,text,perhaps\n", "true or false"),
            ("name,kind\n,text\n", "line 2: a column needs a name"),
            ("name,kind\na,text\na,text\n", "column 'a' is declared twice"),
            ("name,kind,colour\na,text,red\n", "unknown setting 'colour'"),
            ("name,kind,kind\na,text,text\n", "names 'kind' twice"),
            ("name,type\na,text\n", "unknown setting 'type'; did you mean 'kind'?"),
            ("name,kind,catgories\na,text,\n", "did you mean 'categories'?"),
            ("name,kind,categories\na,categorical,A;B;C\n", "separate the entries of categories"),
            ('name,kind,categories\na,categorical,"A,B,C"\n', "by |, for example a|b|c"),
            ("name,kind,missing_markers\na,text,?;-\n", "entries of missing_markers by |"),
            ("name,categories\na,b\n", "needs a column called kind"),
            ("name,kind\n", "at least one column"),
        ],
    )
    def test_wrong_declarations(self, text, words):
        with pytest.raises(SchemaError) as caught:
            read_codebook(text.encode(), name="book.csv")
        assert words in str(caught.value)
        assert str(caught.value).startswith("book.csv")

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"", "empty"),
            (b" \n\n", "empty"),
            (b"name,kind\na,text,more\n", "line 2 has 3 fields"),
            (b'name,kind\n"a,text\n', "starts in line 2"),
            (b"PK\x03\x04....", "ZIP archive"),
            (b"name\0kind", "NUL"),
        ],
    )
    def test_files_that_are_no_codebook(self, data, words):
        with pytest.raises(ReadingError, match=words):
            read_codebook(data)

    def test_no_file(self, tmp_path):
        with pytest.raises(ReadingError, match="cannot be opened"):
            read_codebook(tmp_path / "none.csv")


class TestJson:
    def test_a_list_or_an_object(self):
        columns = [{"name": "x", "kind": "integer", "lower": 0, "upper": 5}]
        one = read_codebook(json.dumps(columns).encode())
        other = read_codebook(json.dumps({"columns": columns}).encode())
        assert one == other == Schema((Column("x", Kind.INTEGER, lower=0, upper=5),))

    @pytest.mark.parametrize(
        ("text", "error", "words"),
        [
            ('[{"name": "x",}]', ReadingError, "line 1 is not valid JSON"),
            ('[{"name": "x", "kind": "text", "kind": "text"}]', ReadingError, "given twice"),
            ('[{"name": "x", "kind": "real", "lower": NaN}]', ReadingError, "NaN"),
            ("[" * 50 + "]" * 50, ReadingError, f"deeper than {MAXIMUM_DEPTH}"),
            ("[" * 100_000, ReadingError, f"deeper than {MAXIMUM_DEPTH}"),
            ('{"rows": []}', SchemaError, "list called columns"),
            ('{"columns": {}}', SchemaError, "must be a list"),
            ("[]", SchemaError, "at least one column"),
            ('["x"]', SchemaError, "entry 1: a column must be a table"),
            ('[{"name": "x", "kind": "text"}, {"name": "y"}]', SchemaError, "entry 2: column 'y'"),
            ('[{"name": "\\ud800", "kind": "text"}]', SchemaError, "lone surrogate"),
        ],
    )
    def test_refusals(self, text, error, words):
        with pytest.raises(error, match=words):
            read_codebook(text.encode())

    def test_brackets_within_texts_do_not_nest(self):
        plain = [{"name": '"[[[[[[[[[[[[', "kind": "text", "reason": '\\"{{{{{{{{{{{{'}]
        assert read_codebook(json.dumps(plain).encode()).names == ('"[[[[[[[[[[[[',)


class TestRoundTrip:
    @QUICK
    @given(schemas(tuple(Kind)), st.sampled_from(["csv", "json"]))
    def test_any_schema(self, schema, form):
        again = read_codebook(codebook_bytes(schema, form))
        assert again == schema
        assert again.digest == schema.digest

    @pytest.mark.parametrize("ending", ["csv", "json"])
    def test_the_ending_is_the_form(self, tmp_path, ending):
        schema = Schema(
            (
                Column("a|b", Kind.CATEGORICAL, categories=(" x", "y ", "\\", "|", "é\r\nü")),
                Column("r", Kind.REAL, edges=(0, 0.1, 1e-300 + 5), decimals=2),
            )
        )
        path = tmp_path / f"book.{ending}"
        write_codebook(schema, path)
        assert read_codebook(path) == schema
        assert path.read_text(encoding="utf-8").startswith("{" if ending == "json" else "name,kind")

    def test_unknown_form(self, tmp_path):
        with pytest.raises(SchemaError, match="csv or json"):
            write_codebook(Schema((Column("a", Kind.TEXT),)), tmp_path / "book.xlsx")

    @QUICK
    @given(
        st.binary(max_size=200)
        | st.text(max_size=200).map(lambda text: text.encode("utf-8", "ignore"))
    )
    def test_any_bytes_make_a_schema_or_a_plain_error(self, data):
        with contextlib.suppress(ReadingError, SchemaError):
            assert isinstance(read_codebook(data), Schema)
