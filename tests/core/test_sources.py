"""Tables on the server: who is offered what, what lies below a folder, and what changed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import sources
from core.errors import JustitiaError, PlanError, ReadingError
from core.kind_hints import kind_for
from core.plan import ReadingPlan
from core.private.ledger import Ledger
from core.releases import Unit
from core.schema import Kind
from core.sources import CONNECTION, FOLDER, Folder, ServerTable, listing, offered, path_below

ME = frozenset({"local"})
PASSWORD = "hunter2-secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with tables, and things that are none, beside a file that is none of its business.

    outside.csv, root/{staff.csv,notes.txt,.hidden.csv}, root/parts/{a,b}.parquet, root/mixed/…
    """
    (tmp_path / "outside.csv").write_text("sex\nf\n")
    root = tmp_path / "root"
    for folder in ("parts", "mixed", "parts_of_many"):
        (root / folder).mkdir(parents=True)
    (root / "staff.csv").write_text("sex,grade\nf,A\nm,B\n")
    (root / "notes.txt").write_text("nothing")
    (root / ".hidden.csv").write_text("sex\nf\n")
    frame = pd.DataFrame({"sex": ["f", "m"], "income": [1.5, 2.5], "case_id": [1, 2]})
    for name in ("a", "b"):
        frame.to_parquet(root / "parts" / f"{name}.parquet")
    (root / "mixed" / "x.csv").write_text("sex\nf\n")
    (root / "mixed" / "readme.md").write_text("words")
    for number in range(sources.APART + 1):
        (root / "parts_of_many" / f"p{number}.csv").write_text("sex\nf\n")
    return root


def named(tmp_path: Path, text: str, **more: str) -> dict[str, str]:
    file = tmp_path / "sources.toml"
    file.write_text(text)
    return {"JUSTITIA_SOURCES": str(file), **more}


def database(tmp_path: Path) -> dict[str, str]:
    import duckdb

    place = tmp_path / "people.duckdb"
    with duckdb.connect(place) as opened:
        opened.execute("create table people as select 'f' as sex, 1.5 as income, 7 as case_id")
    file = tmp_path / "connections.toml"
    file.write_text(
        f"[clinic]\nurl = 'duckdb://{place}'\ntables = ['people']\n"
        f"[other]\nurl = 'postgresql://u:{PASSWORD}@nowhere/db'\n"
    )
    return named(tmp_path, "[connections.clinic]\n", JUSTITIA_CONNECTIONS=str(file))


# -- who is offered what -----------------------------------------------------------------------


def test_nothing_is_offered_unless_the_administrator_says_so(tmp_path: Path, root: Path) -> None:
    assert not offered(ME, {})
    assert not offered(ME, named(tmp_path, ""))
    settings_of = named(tmp_path, f"[folders.data]\npath = '{root}'\n")
    assert list(offered(ME, settings_of).folders) == ["data"]
    assert not offered((), settings_of), "nobody in particular is offered nothing"


def test_owners_see_theirs_and_nobody_elses(tmp_path: Path, root: Path) -> None:
    text = (
        f"[folders.hers]\npath = '{root}'\nowners = ['Anna@example.org']\n"
        f"[folders.nobodys]\npath = '{root}'\nowners = []\n"
        f"[folders.open]\npath = '{root}'\n"
    )
    environ = named(tmp_path, text)
    assert set(offered({"subject 1", "anna@EXAMPLE.org"}, environ).folders) == {"hers", "open"}
    assert set(offered({"subject 2"}, environ).folders) == {"open"}


def test_only_connections_that_both_files_name_are_offered(tmp_path: Path) -> None:
    offer = offered(ME, database(tmp_path))
    assert list(offer.connections) == ["clinic"]
    assert offer.connections["clinic"].tables == ("people",)
    assert PASSWORD not in repr(offer)


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        "[folders.x]\npath = 'relative'\n",
        "[folders.x]\nowners = ['a']\n",
        "[folders.'a b']\npath = '/x'\n",
        "[folders.x]\npath = '/x'\nowners = 'a'\n",
        "[folders]\nx = 1\n",
        "[connections.x]\nurl = 'postgresql://u:hunter2-secret@h/d'\n",
        "[others.x]\n",
    ],
)
def test_wrong_settings_are_refused_without_quoting_them(tmp_path: Path, text: str) -> None:
    with pytest.raises(ReadingError, match="JUSTITIA_SOURCES") as caught:
        offered(ME, named(tmp_path, text))
    assert PASSWORD not in str(caught.value)


# -- below a folder ------------------------------------------------------------------------------


def test_the_list_holds_tables_only(root: Path) -> None:
    (root / "link.csv").symlink_to(root / "staff.csv")
    found = listing(Folder("data", root))
    expected = (
        *("mixed/x.csv", "parts", "parts/a.parquet", "parts/b.parquet"),
        *("parts_of_many", "staff.csv"),
    )
    assert found.tables == expected
    assert not found.more


def test_the_list_is_bounded_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LISTED", 2)
    found = listing(Folder("data", root))
    assert len(found.tables) == 2
    assert found.more
    monkeypatch.setattr(sources, "LISTED", 300)
    monkeypatch.setattr(sources, "LOOKED_AT", 3)
    assert listing(Folder("data", root)).more


@pytest.mark.parametrize("place", ["staff.csv", "parts", "parts/a.parquet", "./staff.csv"])
def test_tables_below_the_folder_are_found(root: Path, place: str) -> None:
    assert path_below(Folder("data", root), place) == (root / place).resolve()


@pytest.mark.parametrize(
    "place",
    [
        *("", "../outside.csv", "parts/../../outside.csv", "/etc/passwd", "notes.txt"),
        *(".hidden.csv", "missing.csv", "staff.csv\0", "x" * 5_000, "out.csv", "away", "loop.csv"),
        "pipe.csv",
    ],
)
def test_everything_else_is_refused_in_the_same_words(root: Path, place: str) -> None:
    (root / "out.csv").symlink_to(root.parent / "outside.csv")
    (root / "away").mkdir()
    (root / "away" / "one.csv").symlink_to(root.parent / "outside.csv")
    (root / "loop.csv").symlink_to(root / "loop.csv")
    os.mkfifo(root / "pipe.csv")
    with pytest.raises(ReadingError, match="no such table below 'data'"):
        path_below(Folder("data", root), place)


def test_a_link_that_stays_inside_may_be_typed(root: Path) -> None:
    (root / "link.csv").symlink_to(root / "staff.csv")
    assert path_below(Folder("data", root), "link.csv") == (root / "staff.csv").resolve()


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(parts=st.lists(st.sampled_from(["..", ".", "", "parts", "out", "a.parquet", "*"])))
def test_no_way_leads_out(root: Path, parts: list[str]) -> None:
    out = root / "out"
    if not out.is_symlink():
        out.symlink_to(root.parent, target_is_directory=True)
    try:
        found = path_below(Folder("data", root), "/".join(parts))
    except ReadingError:
        return
    assert found.is_relative_to(root.resolve())


# -- choosing, and opening again -----------------------------------------------------------------


def offer_of(tmp_path: Path, root: Path) -> sources.Offer:
    return offered(ME, named(tmp_path, f"[folders.data]\npath = '{root}'\n"))


def test_a_folder_is_chosen_by_its_columns_and_opened_again(tmp_path: Path, root: Path) -> None:
    offer, ledger = offer_of(tmp_path, root), Ledger("sqlite://")
    chosen, table = sources.choose(
        ServerTable(FOLDER, "data", "parts"), ReadingPlan(), offer, ledger
    )
    assert table.names == ("sex", "income", "case_id")
    kinds = {"sex": Kind.CATEGORICAL, "income": Kind.REAL, "case_id": Kind.IDENTIFIER}
    assert sources.kinds_of(table) == kinds
    kept = ServerTable.from_dict(json.loads(json.dumps(chosen.to_dict())))
    assert kept == chosen
    assert str(root) not in json.dumps(kept.to_dict()), "paths of the server stay with it"
    assert sources.open_again(kept, ReadingPlan(), offer, ledger).names == table.names


def test_what_changed_or_went_is_said(tmp_path: Path, root: Path) -> None:
    offer, ledger = offer_of(tmp_path, root), Ledger("sqlite://")
    chosen, _ = sources.choose(
        ServerTable(FOLDER, "data", "staff.csv"), ReadingPlan(), offer, ledger
    )
    (root / "staff.csv").write_text("sex,grade\nf,A\nm,B\nm,B\n")
    with pytest.raises(ReadingError, match="no longer what they were"):
        sources.open_again(chosen, ReadingPlan(), offer, ledger)
    (root / "staff.csv").unlink()
    with pytest.raises(ReadingError, match="no such table"):
        sources.open_again(chosen, ReadingPlan(), offer, ledger)
    with pytest.raises(ReadingError, match="not offered to you"):
        sources.open_again(chosen, ReadingPlan(), sources.Offer(), ledger)


def test_a_database_table_is_recognised_by_its_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    environ = database(tmp_path)
    monkeypatch.setenv("JUSTITIA_CONNECTIONS", environ["JUSTITIA_CONNECTIONS"])
    offer, ledger = offered(ME, environ), Ledger("sqlite://")
    wanted = ServerTable(CONNECTION, "clinic", "people", "2026-07")
    chosen, table = sources.choose(wanted, ReadingPlan(), offer, ledger)
    kinds = {"sex": Kind.CATEGORICAL, "income": Kind.REAL, "case_id": Kind.IDENTIFIER}
    assert sources.kinds_of(table) == kinds
    assert sources.open_again(chosen, ReadingPlan(), offer, ledger).names == table.names
    table.table.get_backend().disconnect()
    del table
    with duckdb.connect(tmp_path / "people.duckdb") as opened:
        opened.execute("alter table people drop column income")
    with pytest.raises(ReadingError, match="its columns are no longer"):
        sources.open_again(chosen, ReadingPlan(), offer, ledger)
    with pytest.raises(JustitiaError) as caught:
        sources.choose(
            ServerTable(CONNECTION, "other", "people", "1"), ReadingPlan(), offer, ledger
        )
    assert PASSWORD not in str(caught.value)


def test_a_person_column_is_refused_in_words() -> None:
    sources.check_unit(Unit())
    with pytest.raises(PlanError, match="person"):
        sources.check_unit(Unit(3, "case_id"))


@pytest.mark.parametrize("plain", [{}, {"kind": "x", "name": "a", "table": "b"}, {"kind": 1}])
def test_foreign_documents_are_no_tables(plain: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        ServerTable.from_dict(plain)


@pytest.mark.parametrize(
    ("name", "stored", "kind"),
    [
        ("grade", "text", None),
        ("user-id", "text", Kind.IDENTIFIER),
        ("idea", "text", None),
        ("paid", "int32", Kind.INTEGER),
        ("interval", "interval", None),
        ("born", "timestamp[us]", Kind.DATE),
        ("active", "!boolean", Kind.BOOLEAN),
        ("price", "decimal128(10, 2)", Kind.REAL),
        ("remarks", "large_string", Kind.TEXT),
        ("town", "dictionary<values=string, indices=int32>", Kind.CATEGORICAL),
    ],
)
def test_kinds_follow_from_names_and_types(name: str, stored: str, kind: Kind | None) -> None:
    assert kind_for(name, stored) is kind
