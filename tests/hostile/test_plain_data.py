"""Plans, codebooks, published statistics and kept projects from strangers."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable

import pytest

from core.codebook import read_codebook
from core.errors import JustitiaError, LedgerError, PlanError, ReadingError
from core.pace.release import CovarianceRelease
from core.plain_data import json_value, toml_table
from core.plan import MAXIMUM_BYTES, read_plan, read_plan_bytes
from core.pumba.published import read_published
from core.pumba.release import StatisticsRelease
from core.releases import TreeRelease
from core.visible import visible
from tests.hostile import seeds
from tests.hostile.targets import check_message

TREE = b"[population]\nname = 'a'\n[tree]\nrho = 1\n[[columns]]\nname = 'x'\nkind = 'text'\n"
ROW = {"analysis": "a", "kind": "table", "statistic": "count", "column": "c", "family": "laplace"}


def json_bytes(depth: int, shape: str) -> bytes:
    return {"list": "[" * depth + "]" * depth, "object": '{"a":' * depth + "1" + "}" * depth}[
        shape
    ].encode()


def in_row(**fields: object) -> bytes:
    rows = [{**ROW, "category": c, "value": 5, "scale": 1, **fields} for c in ("x", "y")]
    return json.dumps(rows).encode()


def in_column(**settings: object) -> bytes:
    return json.dumps(
        [{"name": "x", "kind": "integer", "lower": 0, "upper": 1, **settings}]
    ).encode()


DEEP = "x = " + "[" * 5000 + "]" * 5000
PLANS: dict[str, tuple[bytes, str]] = {
    "deep arrays": (TREE + DEEP.encode(), "nested deeper"),
    "deep tables": (TREE + b"x = " + b"{a = " * 3000 + b"1" + b"}" * 3000, "nested deeper"),
    "a key of many parts": (b"a." * 5000 + b"a = 1\n" + TREE, "nested deeper"),
    "a header of many parts": (TREE + b"[" + b"a." * 5000 + b"a]\n", "nested deeper"),
    "a name of depth 30": (TREE.replace(b"'x'", b"[" * 30 + b"]" * 30), "nested deeper"),
    "a number of 5,000 digits": (TREE.replace(b"rho = 1", b"rho = " + b"9" * 5000), "digits"),
    "a number beyond floats": (TREE.replace(b"rho = 1", b"rho = 1e999"), "infinite"),
    "not a number": (TREE.replace(b"rho = 1", b"rho = nan"), "not a number"),
    "a fraction of nothing": (TREE.replace(b"rho = 1", b"rho = '1/0'"), "rho"),
    "a price of 10**400": (TREE.replace(b"rho = 1", b"rho = 1" + b"0" * 400), "too large"),
    "a date for a price": (TREE.replace(b"rho = 1", b"rho = 2024-01-01"), "not a number"),
    "a NUL": (TREE + b"\0", "not valid TOML"),
    "UTF-16": (TREE.decode().encode("utf-16"), "not UTF-8"),
    "a lone surrogate": (TREE.replace(b"'x'", b'"\\ud800"'), "not valid TOML"),
    "the same table twice": (TREE + b"[tree]\nrho = 1\n", "not valid TOML"),
    "an unknown setting with a long name": (TREE + b"y" * 100_000 + b" = 1\n", "unknown setting"),
    "an unclosed text": (TREE + b'x = """' + b'\\"' * 100_000, "not valid TOML"),
    "a table": (b"person,sex\n1,f\n", "not valid TOML"),
    "a plan that is too large": (b"#" * (MAXIMUM_BYTES + 1), "at most 5,000,000 bytes"),
}


@pytest.mark.parametrize("case", sorted(PLANS))
def test_no_plan_gets_further_than_one_sentence(case, tmp_path):
    data, words = PLANS[case]
    (tmp_path / "plan.toml").write_bytes(data)
    for read in (lambda: read_plan_bytes(data), lambda: read_plan(tmp_path / "plan.toml")):
        with pytest.raises(JustitiaError) as caught:
            read()
        check_message(caught.value, confidential=False)
        assert words in str(caught.value)


def test_a_plan_may_say_what_looks_deep():
    """Dots, brackets and quotes within texts and comments are no nesting."""
    reason = "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p " + "[" * 40
    text = (
        f'# {reason}\n[population]\nname = """a"""\n[tree]\nrho = 0.5\n'
        f'[[columns]]\nname = \'{reason}\'\nkind = \'text\'\nreason = """\n{reason} """"\n'
        '[[columns]]\nname = "edges"\nkind = "real"\n'
        f"edges = [{', '.join(f'{i}.5' for i in range(40))}]\n"
    )
    plan = read_plan_bytes(text.encode())
    assert plan.schema.columns[0].name == reason
    assert plan.schema.columns[0].reason.endswith('"')


@pytest.mark.parametrize("name", ["\0", "a" * 5000, "no such plan"])
def test_a_plan_that_cannot_be_opened(name, tmp_path):
    with pytest.raises(PlanError) as caught:
        read_plan(tmp_path / name)
    check_message(caught.value, confidential=False)


BOTH = (read_codebook, read_published)
JSONS: dict[str, tuple[bytes, str]] = {
    "deep lists": (json_bytes(100_000, "list"), "nested deeper"),
    "deep objects": (json_bytes(100_000, "object"), "nested deeper"),
    "lists of depth 30": (json_bytes(30, "list"), "nested deeper"),
    "unclosed lists": (b"[" * 100_000, "nested deeper"),
    "an integer of 5,000 digits": (b"[" + b"9" * 5000 + b"]", "too many digits"),
    "a number beyond floats": (b'[{"name": 1e999}]', "too large"),
    "NaN": (b'[{"name": NaN}]', "NaN is not a number"),
    "a name twice": (b'[{"name": "a", "name": "b"}]', "twice"),
    "a trailing comma": (b'[{"name": "a"},]', "not valid JSON"),
    "an unclosed text of quotes": (b'["' + b'\\"' * 500_000, "not valid JSON"),
    "a NUL": (b'["a\0"]', "NUL"),
    "two values": (b"[][]", "not valid JSON"),
    "an empty file": (b"  \n", "empty"),
    "a pickle": (b"\x80\x04\x95[]", "pickle"),
    "a header of 100,000 letters": (b"n" * 100_000 + b",kind\nx,text\n", "n" * 1000),
    "10,000 columns": (b",".join([b"kind"] * 10_000) + b"\n", "twice"),
}


@pytest.mark.parametrize("read", BOTH, ids=["codebook", "published"])
@pytest.mark.parametrize("case", sorted(JSONS))
def test_no_codebook_or_statistics_get_further_than_one_sentence(case, read):
    data, words = JSONS[case]
    with pytest.raises(JustitiaError) as caught:
        read(data)
    check_message(caught.value, confidential=False)
    assert words in str(caught.value)


CODEBOOKS = {
    "a bound beyond exact arithmetic": (in_column(upper=2**53 + 2), "2**53"),
    "a bound of 400 digits": (in_column(upper=int("9" * 400)), "finite"),
    "a bound that is a list": (in_column(upper=[1]), "number or a text"),
    "more bins than memory": (in_column(bins=10**12), "bins must be a whole number"),
    "a lone surrogate": (in_column(name="\ud800"), "surrogate"),
    "a NUL in a name": (in_column(name="a\0b"), "NUL"),
    "a name of no letters": (in_column(name=""), "name"),
    "categories of a number": (in_column(categories="abc"), "must be a list"),
    "a name that is an object": (b'[{"name": {"a": 1}, "kind": "text"}]', "name"),
}


@pytest.mark.parametrize("case", sorted(CODEBOOKS))
def test_impossible_declarations_are_named(case):
    data, words = CODEBOOKS[case]
    with pytest.raises(JustitiaError) as caught:
        read_codebook(data)
    check_message(caught.value, confidential=False)
    assert words in str(caught.value)


STATISTICS = {
    "a value of 1e308": (in_row(value=1e308), "too large"),
    "a value of 1e309": (in_row(value="1e309"), "finite"),
    "a value of 400 digits": (in_row(value="9" * 400), "finite"),
    "a scale of 1e-320": (in_row(scale=1e-320), "too small"),
    "a scale of nothing": (in_row(scale=0), "above 0"),
    "bounds of 1e300": (in_row(lower=-1e300, upper=1e300), "too large"),
    "a list for a value": (in_row(value=[1]), "no number"),
    "a label with a line break": (in_row(category="a\nb"), "control character"),
}


@pytest.mark.parametrize("case", sorted(STATISTICS))
def test_impossible_statistics_are_named(case):
    data, words = STATISTICS[case]
    with pytest.raises(JustitiaError) as caught:
        read_published(data)
    check_message(caught.value, confidential=False)
    assert words in str(caught.value)


def test_numbers_at_the_ends_still_give_finite_answers():
    """Whatever is let in can be computed with: no overflow, nothing undefined."""
    from tests.hostile.targets import infer

    for value, scale in ((1e70, 1e-50), (1e70, 1e70), (0.0, 1e-50), (-1e-50, 1e-50)):
        try:
            infer(in_row(value=value, scale=scale))
        except JustitiaError as error:
            check_message(error, confidential=False)


# -- projects ----------------------------------------------------------------------------------

PROJECTS: tuple[object, ...] = (
    *(None, [], "", 5, {}, {"version": 1}, {"version": 99}),
    {**seeds.projects()[0], "runs": [["a"]]},
    {**seeds.projects()[0], "runs": 5},
    {**seeds.projects()[0], "schema": {"columns": [{"name": "x", "kind": "integer"}]}},
    {**seeds.projects()[0], "attempt": "many"},
    {**seeds.projects()[0], "attempt": float("inf")},
    {**seeds.projects()[0], "population": {"name": "a", "cap": "1/0"}},
    {**seeds.projects()[0], "roles": {"columns": {"a": []}}},
    {**seeds.projects()[0], "views": 5},
)


@pytest.mark.parametrize("document", PROJECTS, ids=range(len(PROJECTS)))
def test_a_kept_project_of_another_shape_is_refused_in_one_sentence(document):
    from pages.shared.saved import project_from

    with pytest.raises(LedgerError, match="cannot be opened") as caught:
        project_from(document, "0" * 16, "local")
    check_message(caught.value, confidential=False)


def test_a_deep_or_large_document_is_not_kept(home):
    from core.private.ledger import Ledger
    from core.store import Store

    store = Store(Ledger("sqlite://"))
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    for document, words in (
        (deep, "nested too deeply"),
        ({"a": "x" * 5_000_001}, "larger than 5 MB"),
        ({"a": float("nan")}, "cannot keep"),
        ({1: 2}, "not a text"),
    ):
        with pytest.raises(LedgerError, match=words):
            store.save_project("p", document)
    assert store.projects() == []


# -- stored releases ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TreeRelease, StatisticsRelease, CovarianceRelease])
@pytest.mark.parametrize(
    "blob", [b"", b"PK\x03\x04", b"\x80\x04\x95pickle", b"\x93NUMPY", b"{}"], ids=repr
)
def test_rubbish_is_no_release(kind, blob):
    with pytest.raises(JustitiaError, match="damaged"):
        kind.from_bytes(blob)


# -- messages ----------------------------------------------------------------------------------


def test_no_message_steers_a_terminal_or_grows_without_end():
    error = ReadingError("a\x1b[2J\u202eb\nc" + "x" * 10_000)
    assert str(error).startswith("a(U+001B)[2J(U+202E)b c")
    assert len(str(error)) < 2100
    assert visible("שלום عربي 日本 \u200d") == "שלום عربي 日本 \u200d"


# -- time --------------------------------------------------------------------------------------

GROWING: dict[str, tuple[Callable[[int], object], int]] = {
    "escaped quotes": (lambda n: _told(json_value, '["' + '\\"' * n), 200_000),
    "brackets": (lambda n: _told(json_value, "[" + "[]," * n + "[]]"), 20_000),
    "escapes in a TOML text": (lambda n: _told(toml_table, 'x = "' + "\\n" * n), 20_000),
    "escaped quotes in a TOML text": (lambda n: _told(toml_table, 'x = "' + '\\"' * n), 20_000),
    "texts in a TOML file": (lambda n: _told(toml_table, "x = " + "'a' " * n), 50_000),
    "words in a TOML file": (lambda n: _told(toml_table, "a" * n), 200_000),
    "key parts": (lambda n: _told(toml_table, "a." * n + "a = 1"), 100_000),
    "blank lines": (lambda n: _told(read_codebook, b"name,kind\n" + b"\n" * n), 20_000),
    "a long header": (lambda n: _told(read_published, b"a" * min(n, 131_000)), 60_000),
}


def _told(read: Callable[..., object], data: object) -> None:
    try:
        read(data) if isinstance(data, bytes) else read(data, "t")
    except JustitiaError as error:
        check_message(error, confidential=False)


@pytest.mark.parametrize("case", sorted(GROWING))
def test_time_grows_with_the_size_and_not_with_its_square(case):
    read, size = GROWING[case]

    def seconds(n: int) -> float:
        best = float("inf")
        for _ in range(3):
            gc.collect()
            gc.disable()  # it looks at everything else that the tests hold
            try:
                start = time.process_time()
                read(n)
                best = min(best, time.process_time() - start)
            finally:
                gc.enable()
        return best

    # Eight times the size: 8 where time is linear, 64 where it is quadratic.
    assert seconds(8 * size) < 32 * max(seconds(size), 0.002)
