"""Field cases about releases: bounds, budget, fit, sampling and clipping.

Each case is a failure that users of neighbouring tools reported; its number is in the test's name.
"""

from __future__ import annotations

import itertools
import json
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from core.__main__ import main
from core.attachment import attach_simulated, read_for
from core.moments import MomentFrame, MomentRequest
from core.private.ledger import Ledger
from core.private.source import InMemorySource
from core.schema import Column, Kind
from tests.core.field_cases import (
    csv_text,
    draft,
    files_in,
    plan,
    release,
    run,
    save,
    spends,
    write,
    yes_no,
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Each test has a ledger and a secret of its own."""
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))


# -- F-05: one extreme value ------------------------------------------------------------------

VARIANTS = ["-7.5", "inf", "-inf", "1e400", "NaN", "", "-0.0"]
BALANCES = [round(-1200.25 + 2000.25 * step / 99, 2) for step in range(100)]


def balances(tmp_path, odd: str):
    rows = [[value, "NS"[index % 2]] for index, value in enumerate(BALANCES)]
    return write(tmp_path / "balances.csv", csv_text([["balance", "branch"], *rows, [odd, "N"]]))


def test_f05_with_declared_bounds_every_value_runs_with_the_same_messages(tmp_path, capsys):
    columns = [
        Column("balance", Kind.REAL, lower=-2000, upper=2000, bins=4, decimals=2),
        Column("branch", Kind.CATEGORICAL, categories=("N", "S")),
    ]
    path = save(plan(columns, cap=20), tmp_path / "plan.toml")
    exact = save(plan(columns, "1000000"), tmp_path / "exact.toml")
    cells = columns[0].cells
    assert cells == ("[-2000, -1000)", "[-1000, 0)", "[0, 1000)", "[1000, 2000]", "(missing)")
    base = [*np.histogram(BALANCES, [-2000, -1000, 0, 1000, 2000])[0].tolist(), 0]
    lands = {"-7.5": 1, "inf": 3, "-inf": 0, "1e400": 3, "NaN": 4, "": 4, "-0.0": 2}
    told = set()
    for odd in VARIANTS:
        data = balances(tmp_path, odd)
        capsys.readouterr()
        out = release(path, data, tmp_path / "out")
        lines = capsys.readouterr().err.splitlines()
        # Where the population stands changes with every charge, and with nothing else.
        told.add(tuple(line for line in lines if not line.startswith("note: population ")))
        numbers = pd.to_numeric(out.synthetic["balance"], errors="raise").dropna()
        assert numbers.between(-2000, 2000).all()
        # At this rho the noise is zero: one row more, in the cell that the rule says.
        counts = release(exact, data, tmp_path / "exact", seed=0).one_way["balance"]
        expected = [count + (cell == lands[odd]) for cell, count in enumerate(base)]
        assert [counts[cell] for cell in cells] == expected
    assert len(told) == 1
    assert len(spends()) == len(VARIANTS)


@pytest.mark.parametrize("odd", VARIANTS)
def test_f05_inferred_bounds_are_finite_flagged_and_never_fail_after_the_charge(tmp_path, odd):
    data = balances(tmp_path, odd)
    path = tmp_path / "plan.toml"
    column = draft(data, path, "--suggest").schema["balance"]
    assert (column.kind, column.lower, column.upper) == (Kind.REAL, -1200.25, 800)
    out = release(path, data, tmp_path / "out")
    assert "Flag: **data-dependent domain**" in out.text("statement.md")
    assert out.release.provenance.flags == ("data-dependent domain",)
    assert out.text("plan.toml").count("data_dependent = true") == 2
    for end in ("inf", "-inf"):
        text = re.sub(r"upper = 800.*", f"upper = {end}", path.read_text())
        assert run(write(tmp_path / "endless.toml", text), data, tmp_path / "endless") == 2
    assert [spend.state.value for spend in spends()] == ["done"]


# -- F-06: exact budgets ----------------------------------------------------------------------

COINS = [yes_no("a"), yes_no("b")]


def coins_file(tmp_path):
    return write(tmp_path / "coins.csv", "a,b\n" + "yes,no\nno,yes\n" * 10)


def priced(path, rho: str, cap: str):
    """A plan with unquoted TOML numbers, as people write them."""
    text = plan(COINS, "1/97", cap="5/97").to_toml()
    text = text.replace('rho = "1/97"', f"rho = {rho}").replace('cap = "5/97"', f"cap = {cap}")
    return write(path, text)


@pytest.mark.parametrize(
    ("cap", "parts"),
    [
        ("0.3", ["0.1"] * 3),
        ("1", ['"1/11"'] * 11),
        *(("1.0", list(parts)) for parts in itertools.permutations(["0.7", "0.2", "0.1"])),
    ],
)
def test_f06_the_parts_fill_the_whole_and_a_trillionth_more_is_refused(
    tmp_path, capsys, monkeypatch, cap, parts
):
    data = coins_file(tmp_path)
    for rho in parts:
        path = priced(tmp_path / "plan.toml", rho, cap)
        # Every command opens the ledger anew, as after a restart.
        assert run(path, data, tmp_path / "out", "--new-release") == 0
    assert json.loads((tmp_path / "out/ledger.json").read_text())["remaining_rho"] == "0"
    assert Ledger(None).remaining("people") == 0
    assert [spend.rho for spend in spends()] == [Fraction(part.strip('"')) for part in parts]
    capsys.readouterr()
    assert main(["ledger"]) == 0
    shown = cap.removesuffix(".0")
    assert f"spent rho = {shown} of {shown}" in capsys.readouterr().out

    def touched(*_):
        raise AssertionError("the table was touched")

    monkeypatch.setattr(InMemorySource, "counts", touched)
    path = priced(tmp_path / "plan.toml", "1e-12", cap)
    assert run(path, data, tmp_path / "more") == 3
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "people" in line
    assert not files_in(tmp_path / "more")
    assert len(spends()) == len(parts)


@pytest.mark.parametrize("rho", ["0", "-1", "nan", "inf", '""', '"nan"', '"-1/3"'])
def test_f06_what_is_no_budget_is_refused_in_words(tmp_path, capsys, rho):
    path = priced(tmp_path / "plan.toml", rho, "1")
    assert run(path, coins_file(tmp_path), tmp_path / "out") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("justitia: tree rho: ")
    assert "Traceback" not in line
    assert not spends()


# -- F-07: names and their order --------------------------------------------------------------

AWKWARD = ("index", "level_0", "count", "0", "weight")
ALMOST_ALIKE = ("a b", "A b", "a_b", "a.b", 'a"b')


def copies(names, order, path):
    """Column 1 is a copy of column 0, uniform on 0 to 4; the others are independent coins."""
    coins = np.random.default_rng(7).integers(0, 2, (300, 3)).tolist()
    rows = [[row % 5, row % 5, *coins[row]] for row in range(300)]
    shown = [[row[place] for place in order] for row in rows]
    columns = [
        Column(names[place], Kind.INTEGER, lower=0, upper=4 if place < 2 else 1) for place in order
    ]
    return columns, write(path, csv_text([[column.name for column in columns], *shown]))


def orders():
    every = list(itertools.permutations(range(5)))
    chosen = np.random.default_rng(0).choice(len(every), 20, replace=False)
    return [every[index] for index in chosen]


# The copy scores about 480 rows, any other pair about 20, against Gumbel noise of scale 2.5: the
# copy is an edge unless an event of probability near exp(-180) happens.
@pytest.mark.parametrize("names", [AWKWARD, ALMOST_ALIKE], ids=["awkward", "almost alike"])
def test_f07_no_order_and_no_naming_loses_a_pair_or_a_letter(tmp_path, names):
    for number, order in enumerate(orders()):
        columns, data = copies(names, order, tmp_path / "data.csv")
        shown = [column.name for column in columns]
        forms = ("csv", "parquet", "spreadsheet") if number < 3 else ("csv",)
        path = save(plan(columns, cap=20, files=forms), tmp_path / "plan.toml")
        seed = None if number < 3 else number
        out = release(path, data, tmp_path / str(number), seed=seed)
        assert tuple(sorted(names[:2])) in out.release.edges
        assert out.rows()[0] == shown
        assert [column["name"] for column in out.tree["columns"]] == shown
        assert {row[0] for row in out.rows("marginals/one_way.csv")[1:]} == set(names)
        edges = {tuple(row[:3:2]) for row in out.rows("marginals/two_way.csv")[1:]}
        assert edges == set(out.release.edges)
        if number < 3:
            assert out.rows("synthetic-for-excel.csv") == out.rows()
            assert pq.read_table(out.path("synthetic.parquet")).column_names == shown


# -- F-08: few rows, many columns -------------------------------------------------------------

PAIRS = [(f"c{place:02}", f"c{place + 1:02}") for place in range(0, 80, 2)]
CLINIC = [yes_no(name) for pair in PAIRS for name in pair]


def clinic(path, seed: int):
    """180 rows of 40 pairs of coins; the second of a pair equals the first in 90 % of rows."""
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 2, (180, 40))
    second = np.where(generator.random((180, 40)) < 0.9, first, 1 - first)
    table = np.stack([first, second], axis=2).reshape(180, 80)
    labels = np.array(["no", "yes"])[table].tolist()
    return write(path, csv_text([[column.name for column in CLINIC], *labels]))


def test_f08_the_steward_is_told_before_the_charge_and_the_result_is_marked(
    tmp_path, capsys, monkeypatch
):
    data = clinic(tmp_path / "clinic.csv", 0)
    path = save(plan(CLINIC, "0.1", expected_rows=180), tmp_path / "plan.toml")
    assert main(["forecast", str(path)]) == 0
    forecast = capsys.readouterr().out
    assert "off by about ±34.6 persons" in forecast
    assert "about 45 of 180 persons" in forecast
    assert "Mostly noise" in forecast
    assert "suggestion: Use fewer columns" in forecast
    told_before = []
    charge = Ledger.charge

    def watched(*arguments, **settings):
        told_before.append(capsys.readouterr().err)
        return charge(*arguments, **settings)

    monkeypatch.setattr(Ledger, "charge", watched)
    out = release(path, data, tmp_path / "out")  # the steward may go on
    (told,) = told_before
    assert told.endswith(forecast)
    assert told.removesuffix(forecast).startswith("note: population 'people' is new")
    assert "flag: mostly noise" in capsys.readouterr().err
    assert "- Flag: **mostly noise**. Against the noisy number" in out.text("statement.md")
    assert main(["verify", str(out.path("bundle.zip"))]) == 0
    # A replay spends nothing and forecasts nothing; --quiet says nothing but what it found.
    capsys.readouterr()
    assert run(path, data, tmp_path / "out") == 0
    assert "forecast" not in capsys.readouterr().err
    assert run(path, data, tmp_path / "quiet", "--quiet", seed=1) == 0
    assert "forecast" not in capsys.readouterr().err


def test_f08_fewer_columns_lift_the_mark_as_was_suggested(tmp_path, capsys):
    path = save(plan(CLINIC[:6], "1", expected_rows=180), tmp_path / "plan.toml")
    out = release(path, clinic(tmp_path / "clinic.csv", 0), tmp_path / "out", seed=0)
    assert "suggestion" not in capsys.readouterr().err
    assert "mostly noise" not in out.text("statement.md")


# A pair scores about 144 rows, unrelated columns about 11; the largest of 3,160 Gumbel terms of
# scale 3.4 lies near 28: all 40 pairs are found in practice, 30 with overwhelming probability.
@pytest.mark.parametrize("seed", [1, 2, None])
def test_f08_with_a_hundred_times_the_budget_the_pairs_are_found(tmp_path, seed):
    data = clinic(tmp_path / "clinic.csv", 3)
    path = save(plan(CLINIC, "10", expected_rows=180), tmp_path / "plan.toml")
    out = release(path, data, tmp_path / "out", seed=seed)
    assert out.release.one_way[0].sigma == pytest.approx(3.46, abs=0.02)
    assert len(set(PAIRS) & set(out.release.edges)) >= 30
    assert "mostly noise" not in out.text("statement.md")


# -- F-09: missing values of a number ---------------------------------------------------------


# Shares scatter by about 0.05 points, so every tolerance is twenty standard deviations or more.
@pytest.mark.parametrize("seed", [0, 1, 2, None])
def test_f09_missing_values_stay_where_they_were(tmp_path, seed):
    wages = [round(1000 + 4000 * step / 499) for step in range(500)]
    rows = [["no", ""]] * 3000 + [["yes", ""]] * 1500 + [["yes", wage] for wage in wages]
    data = write(tmp_path / "wages.csv", csv_text([["job", "wage"], *rows]))
    columns = [
        Column("job", Kind.CATEGORICAL, categories=("no", "yes")),
        Column("wage", Kind.INTEGER, lower=0, upper=6000, bins=10),
    ]
    path = save(plan(columns), tmp_path / "plan.toml")
    table = release(path, data, tmp_path / "out", seed=seed).synthetic
    missing = table["wage"] == ""
    assert 0.89 <= missing.mean() <= 0.91
    assert missing[table["job"] == "no"].mean() >= 0.98
    assert 0.72 <= missing[table["job"] == "yes"].mean() <= 0.78
    assert table["wage"][~missing].astype(int).between(0, 6000).all()


# -- F-10: a rare category --------------------------------------------------------------------

LEVELS = ("basic", "plus", "carer")


def carers(path):
    sizes = dict(zip(LEVELS, (6000, 3900, 100), strict=True))
    names = [name for name, size in sizes.items() for _ in range(size)]
    rows = [
        [name, "nesw"[row % 4], "yes" if name == "carer" or row % 5 == 0 else "no"]
        for row, name in enumerate(names)
    ]
    return write(path, csv_text([["plan", "region", "churn"], *rows]))


CARERS = [
    Column("plan", Kind.CATEGORICAL, categories=LEVELS),
    Column("region", Kind.CATEGORICAL, categories=tuple("nesw")),
    yes_no("churn"),
]


# The number of carers scatters by about 1.1, their churn by 0.8 points around 99.6 %.
@pytest.mark.parametrize("seed", [0, 1, 2, None])
def test_f10_one_percent_stays_one_percent(tmp_path, seed):
    path = save(plan(CARERS), tmp_path / "plan.toml")
    table = release(path, carers(tmp_path / "plans.csv"), tmp_path / "out", seed=seed).synthetic
    rare = table["plan"] == "carer"
    assert 0.008 <= rare.mean() <= 0.012
    assert (table["churn"][rare] == "yes").mean() >= 0.9


def test_f10_where_it_is_pooled_the_pool_is_announced_and_opened_again(tmp_path):
    data = carers(tmp_path / "plans.csv")
    path = save(plan(CARERS, "0.001", files=("csv", "parquet")), tmp_path / "plan.toml")
    pooled = drawn = 0
    for seed in range(8):  # a carer is pooled in more than nine of ten draws
        out = release(path, data, tmp_path / str(seed), seed=seed)
        declared = out.tree["columns"][0]
        table = pq.read_table(out.path("synthetic.parquet"))["plan"].to_pandas()
        assert set(LEVELS) <= set(table.cat.categories)
        assert set(table) <= {*LEVELS, "(other)", np.nan} | {None}
        assert not any("merged" in value for value in out.synthetic["plan"])
        if "carer" in declared["merged"]:
            pooled += 1
            drawn += int((table == "carer").sum() > 0)
            assert set(declared["merged"]) <= {*LEVELS, "(other)", "(missing)"}
            assert re.search(r"Rare cells were merged.*: .*plan", out.text("statement.md"))
    assert pooled >= 4
    assert drawn >= pooled / 2


# -- F-13: clipped before it is summed --------------------------------------------------------


def squares(folder, last: str, missing_constant: float | None = None):
    """Noisy second moments of x and y, bounds 0 to 100, with hardly any noise; and one-ways."""
    rows = [[value, value] for value in range(99)]
    data = write(folder / "squares.csv", csv_text([["x", "y"], *rows, [last, 99]]))
    settings = (
        {}
        if missing_constant is None
        else {"missing": "constant", "missing_constant": missing_constant}
    )
    columns = [
        Column(name, Kind.REAL, lower=0, upper=100, bins=4, **settings) for name in ("x", "y")
    ]
    made = plan(columns, "1000000", cap="2000000")
    attached = attach_simulated(made, read_for(made, data), seed=1, allow_real=True)
    grant = attached.vault.grant(Fraction(10**6), "covariance", "covariance")
    frame = MomentFrame.from_bounds(made.schema, ["x", "y"])
    found = grant.moments(MomentRequest.triangle(frame), Fraction(10**6))
    counts = release(save(made, folder / "plan.toml"), data, folder / "out", seed=1).one_way
    return found, counts


def expected_squares(last: float) -> list[float]:
    x = (np.array([*range(99), last]) - 50) / 50
    y = (np.arange(100) - 50) / 50
    return [float(x @ x), float(x @ y), float(y @ y)]


# Truncation to the grid costs at most 100 rows times 2 factors times 2**-12.
TRUNCATION = 200 / 4096


@pytest.mark.parametrize(
    ("last", "counts_as", "cell"),
    [
        ("1000000000", 100, "[75, 100]"),
        ("inf", 100, "[75, 100]"),
        ("-inf", 0, "[0, 25)"),
        ("100", 100, "[75, 100]"),
        ("", 50, "(missing)"),  # blank: the centre in moments, a cell of its own in tables
    ],
)
def test_f13_every_path_clips_before_it_sums(tmp_path, last, counts_as, cell):
    found, counts = squares(tmp_path, last)
    assert found.request.monomials == (("x", "x"), ("x", "y"), ("y", "y"))
    slack = TRUNCATION + 6 * float(found.sigmas.max())
    assert slack < 0.1
    assert found.values == pytest.approx(expected_squares(counts_as), abs=slack)
    assert found.values.max() <= 100 + slack  # in data units: 100 rows of at most 50 squared
    base = dict.fromkeys(("[0, 25)", "[25, 50)", "[50, 75)"), 25) | {"[75, 100]": 24}
    base["(missing)"] = 0
    base[cell] += 1
    assert counts["x"] == base


def test_f13_a_declared_constant_stands_for_blank_in_every_path(tmp_path):
    found, counts = squares(tmp_path, "", missing_constant=10)
    assert found.values == pytest.approx(expected_squares(10), abs=0.1)
    assert counts["x"] == {"[0, 25)": 26, "[25, 50)": 25, "[50, 75)": 25, "[75, 100]": 24}
