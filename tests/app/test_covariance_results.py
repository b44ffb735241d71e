"""What a covariance release gives afterwards: replay, pictures, tables, files; all of it free."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from core.errors import EstimationError
from core.pace.view import RoundView
from pages.shared import (
    covariance_charts,
    covariance_files,
    covariance_network,
    covariance_results,
    covariance_rows,
    heat,
)
from pages.shared.covariance_rounds import KINDS, decimals, replays_of, sentence
from pages.shared.project import KEY
from tests.app.test_covariance_page import ready, release_of, released, rows, shown, words


def slider(app: AppTest):
    (found,) = [item for item in app.slider if item.label == "Round"]
    return found


# -- afterwards --------------------------------------------------------------------------------


def test_the_replay_steps_through_the_rounds(app: AppTest) -> None:
    released(app)
    release = release_of(app)
    last = len(release.rounds)
    assert slider(app).value == last
    for step in (last, 1, 0):
        slider(app).set_value(step).run()
        assert not app.exception
        said = words(app)
        if step:
            pair = release.rounds[step - 1].chosen
            assert f"Round {step} of {last}: **{pair[0]}".replace("_", "\\_") in said
        else:
            assert "Before the first round" in said
    (play,) = [button for button in app.button if button.label == "Play"]
    play.click().run()
    assert 0 < slider(app).value < last
    (pause,) = [button for button in app.button if button.label == "Pause"]
    pause.click().run()
    stopped = slider(app).value
    app.run()
    assert slider(app).value == stopped
    assert len(rows()) == 1


def test_every_matrix_and_order_is_drawn(app: AppTest) -> None:
    released(app)
    key = f"cov_{app.session_state[KEY].best_run('covariance').request_id[-12:]}"
    for kind in KINDS:
        app.segmented_control(key=f"{key}_kind").set_value(kind).run()
        assert not app.exception
    app.segmented_control(key=f"{key}_order").set_value("as in the file").run()
    assert not app.exception


def test_only_released_numbers_are_shown(app: AppTest) -> None:
    """The true means and the true number of rows of the demo table appear nowhere."""
    from core import demo
    from pages.shared.actions import DEMO_ROWS, DEMO_SEED

    released(app)
    said = words(app).replace(",", "")
    frame = demo.table("lending", DEMO_ROWS, DEMO_SEED)
    release = release_of(app)
    for name in ("age", "monthly_income", "savings"):
        assert f"{frame[name].mean():.1f}" not in said
    assert f"{release.rows.value:.0f}" in said


def test_downloads_parse_and_agree(app: AppTest) -> None:
    released(app)
    release = release_of(app)
    fitted = replays_of(release).last
    texts = {}
    for name, *_ in covariance_files.CSV:
        text = covariance_files.csv_bytes(release, fitted, name).decode()
        texts[name] = list(csv.reader(io.StringIO(text)))
    for name, matrix in (
        ("covariance.csv", fitted.covariance),
        ("correlation.csv", fitted.correlation),
        ("precision.csv", fitted.precision),
        # empty where nothing was measured
        (
            "standard-errors.csv",
            np.where(fitted.measured, fitted.standard_errors, np.nan),
        ),
    ):
        head, *lines = texts[name]
        assert tuple(head[1:]) == fitted.columns
        found = np.array([[float(cell or "nan") for cell in line[1:]] for line in lines])
        np.testing.assert_allclose(found, matrix, rtol=1e-10)
    head, *lines = texts["partial-correlations.csv"]
    assert {"privacy_low", "privacy_high", "total_low", "total_high"} <= set(head)
    assert len(lines) == int(np.triu(fitted.graph, 1).sum())
    with np.load(io.BytesIO(covariance_files.npz_bytes(fitted)), allow_pickle=False) as loaded:
        assert np.array_equal(loaded["covariance"], fitted.covariance)
    table = pq.read_table(io.BytesIO(covariance_files.parquet_bytes(fitted)))
    assert table.num_rows == 21


def test_sentences_of_rounds() -> None:
    joined = sentence(RoundView(("a_b", "c"), 0.1, 0.42, 0.03, True))
    assert joined == (
        "**a\\_b — c**: the matrix expected a correlation of 0.10, measured was 0.42 ± 0.03; it "
        "**joined**: the matrix follows it from here on."
    )
    kept = sentence(RoundView(("c", "c"), 1.0, 0.98, 0.2, False))
    assert "its variance was expected at 1.0 of what it is now, measured 1.0 ± 0.2" in kept
    assert "only kept" in kept
    assert "−0.50" in sentence(RoundView(("a", "b"), -0.5, 0.4, 0.1, True))
    assert decimals(float("inf")) == 2


# -- what follows from it ----------------------------------------------------------------------


def tab(app: AppTest, name: str) -> AppTest:
    """Open a tab, as a click does."""
    key = f"cov_{app.session_state[KEY].best_run('covariance').request_id[-12:]}_tabs"
    app.session_state[key] = name
    app.run()
    assert not app.exception, app.exception[0].message
    return app


def test_the_strongest_pairs_come_with_both_intervals(app: AppTest) -> None:
    released(app)
    fitted = replays_of(release_of(app)).last
    (table,) = [
        frame.value for frame in app.dataframe if "partial correlation" in frame.value.columns
    ]
    assert {"privacy noise only", "privacy + sampling"} <= set(table.columns)
    first, second = table["pair"][0].split(" — ")
    a, b = fitted.columns.index(first), fitted.columns.index(second)
    assert table["partial correlation"][0] == pytest.approx(fitted.partial_correlation[a, b])
    values = table["partial correlation"].abs().tolist()
    assert values == sorted(values, reverse=True)
    standing = int((table["stands out"] == "yes").sum())
    assert f"{standing} of {len(table)} measured pairs stand out" in words(app)


def test_any_column_is_explained_by_any_others(app: AppTest) -> None:
    released(app)
    tab(app, "Regression")
    (outcome,) = [box for box in app.selectbox if box.label == "Outcome"]
    outcome.set_value("savings").run()
    assert not app.exception
    assert "**savings**" in words(app)
    (predictors,) = [pills for pills in app.pills if pills.label == "Predictors"]
    predictors.set_value(["age"]).run()
    (table,) = [frame.value for frame in app.dataframe if "term" in frame.value.columns]
    assert table["term"].tolist() == ["intercept", "age"]
    (predictors,) = [pills for pills in app.pills if pills.label == "Predictors"]
    predictors.set_value([]).run()
    assert "at least one predictor" in words(app)


def test_every_tab_is_drawn_for_every_method(app: AppTest) -> None:
    released(app, "ssp_tight")
    for name in covariance_results.TABS:
        tab(app, name)
    assert "not the synthetic table of PrivCI" in words(tab(app, "Gaussian rows"))
    assert len(rows()) == 1


def test_gaussian_rows_are_as_many_as_asked_and_start_alike(app: AppTest) -> None:
    released(app, "diagonal")
    release = release_of(app)
    fitted = replays_of(release).last
    frame = pd.read_csv(io.BytesIO(covariance_rows.csv_bytes(release, fitted, 500, 7)))
    assert frame.shape == (500, 6)
    shown_first = covariance_rows.first_rows(release, fitted, 7).frame
    assert frame["age"][:20].tolist() == shown_first["age"].tolist()
    for name in ("age", "savings", "loan_amount"):
        low, high = release.schema[name].bounds
        assert frame[name].between(low, high).all()
    assert covariance_rows.row_count("1,000", 5, 6) == 1000
    assert covariance_rows.row_count("", 5, 6) == 5
    for text in ("many", "-3", "90000000"):
        with pytest.raises(EstimationError):
            covariance_rows.row_count(text, 5, 6)


def test_texts_from_outside_never_become_markup() -> None:
    nasty = 'x</script><img src=x onerror="alert(1)">'
    values = np.array([[1.0, 0.5], [0.5, 1.0]])
    square = heat.Square(
        (nasty, "<b>y</b>"), values, values, 1.0, "correlation", "correlation", values > 0.9
    )
    link = covariance_network.Link(nasty, "<b>y</b>", -0.5, (-0.6, -0.4), (-0.7, -0.3))
    row = covariance_charts.Row(nasty, 0.5, (0.4, 0.6), (0.3, 0.7))
    for picture in (
        heat.draw(square, "light", height=300),
        covariance_network.draw([link], "dark", letters=60),
        covariance_charts.intervals([row], "light", letters=60),
        covariance_charts.compared([(nasty, 0.5)], "light"),
    ):
        text = json.dumps(picture.to_plotly_json(), default=str)
        assert "<img" not in text
        assert "<b>y" not in text


@pytest.mark.parametrize("size", [1, 2, 24, 25, 260])
def test_heat_maps_are_readable_at_every_size(size: int) -> None:
    names = [f"a rather long name of column {i}" for i in range(size)]
    values = np.eye(size)
    marked = np.zeros((size, size), dtype=bool)
    marked[0, -1] = marked[-1, 0] = size > 2
    square = heat.Square(names, values, values, 1.0, "correlation", "correlation", marked)
    picture = heat.draw(square, "light", height=500)
    assert picture.layout.xaxis.showticklabels is (size <= heat.NAMED)
    assert len(picture.layout.xaxis.ticktext) == size
    assert heat.dotted(marked) is (size > 2)
    assert not heat.dotted(np.ones((size, size), dtype=bool)), "everywhere says nothing"


def test_positions_of_the_network_are_fixed_and_apart() -> None:
    pairs = [(f"c{i}", f"c{i + 1}") for i in range(40)] + [("x", "y"), ("p", "q"), ("q", "r")]
    links = [covariance_network.Link(a, b, 0.3, (0.2, 0.4), (0.1, 0.5)) for a, b in pairs]
    names = sorted({name for pair in pairs for name in pair})
    first = covariance_network.lay_out(names, links)
    assert first == covariance_network.lay_out(names, links)
    places = np.array([first[name] for name in names])
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    assert distances[~np.eye(len(names), dtype=bool)].min() > 0.05


def test_a_matrix_of_one_column(app: AppTest) -> None:
    ready(app)
    app.pills(key="cov_columns").set_value(["age"]).run()
    app.button(key="release_covariance").click().run()
    shown(app)
    for name in covariance_results.TABS:
        tab(app, name)
