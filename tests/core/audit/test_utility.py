"""Models and their figures against scikit-learn, brute force and known answers."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.audit import learning
from core.audit.utility import (
    Predictions,
    area_under_curve,
    assess,
    cross_fit,
    deal,
    evaluate,
    train,
)
from core.errors import EstimationError
from core.schema import Column, Kind
from tests.core.audit.made import labelled, random_world, world_of


def predictions(probabilities, constant=None, private=False):
    probabilities = np.asarray(probabilities, dtype=float)
    if constant is None:
        constant = np.full(probabilities.shape[1], 1 / probabilities.shape[1])
    return Predictions(probabilities, np.asarray(constant), private)


def random_predictions(generator, rows, classes, ties=None):
    raw = generator.random((rows, classes)) + 0.05
    if ties is not None:
        raw = np.ceil(raw * ties)
    return raw / raw.sum(axis=1, keepdims=True)


def signal(rows, seed=0, strength=2.0):
    """A world whose outcome follows a logistic law of two columns, and the law itself."""
    generator = np.random.default_rng(seed)
    a, b = generator.integers(0, 3, rows), generator.integers(0, 4, rows)
    log_odds = strength * (a - 1) - 0.5 * (b == 2)
    law = 1 / (1 + np.exp(-log_odds))
    y = (generator.random(rows) < law).astype(int)
    return world_of({"a": a, "b": b, "y": y}, [3, 4, 2]), law


# -- figures against oracles ------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 8))
def test_area_under_curve_is_scikit_learns(seed, rows, levels):
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(seed)
    scores = generator.integers(0, levels, rows) / levels
    positive = generator.random(rows) < 0.4
    positive[:2] = (True, False)
    assert area_under_curve(scores, positive) == pytest.approx(roc_auc_score(positive, scores))


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("ties", [None, 4])
def test_figures_are_those_of_scikit_learn(classes, ties):
    from sklearn.metrics import accuracy_score, roc_auc_score

    generator = np.random.default_rng(classes)
    rows = 400
    found = random_predictions(generator, rows, classes, ties)
    truth = generator.integers(0, classes, rows)
    world = world_of({"y": truth}, [classes])
    utility = assess(predictions(found), world, "y", draws=20)
    if classes == 2:
        auc = roc_auc_score(truth, found[:, 1])
    else:
        auc = roc_auc_score(truth, found, multi_class="ovr", average="macro")
    assert utility.auc.value == pytest.approx(auc)
    assert utility.accuracy.value == pytest.approx(accuracy_score(truth, found.argmax(axis=1)))
    happened = np.eye(classes)[truth]
    brier = np.mean([((p - h) ** 2).sum() / 2 for p, h in zip(found, happened, strict=True)])
    assert utility.brier.value == pytest.approx(brier)


def test_the_binary_brier_score_is_the_usual_one():
    from sklearn.metrics import brier_score_loss

    generator = np.random.default_rng(1)
    found = random_predictions(generator, 300, 2)
    truth = generator.integers(0, 2, 300)
    utility = assess(predictions(found), world_of({"y": truth}, [2]), "y", draws=20)
    assert utility.brier.value == pytest.approx(brier_score_loss(truth, found[:, 1]))


@pytest.mark.parametrize("classes", [2, 4])
def test_calibration_error_by_definition(classes):
    generator = np.random.default_rng(classes)
    rows = 500
    found = random_predictions(generator, rows, classes)
    truth = generator.integers(0, classes, rows)
    error = 0.0
    for cell in range(classes):
        for low in range(10):
            inside = [row for row in range(rows) if low == min(int(found[row, cell] * 10), 9)]
            if inside:
                stated = np.mean([found[row, cell] for row in inside])
                share = np.mean([truth[row] == cell for row in inside])
                error += len(inside) / rows * abs(stated - share) / classes
    utility = assess(predictions(found), world_of({"y": truth}, [classes]), "y", draws=20)
    assert utility.calibration.value == pytest.approx(error)


def test_the_calibration_floor_is_what_a_perfect_model_shows():
    generator = np.random.default_rng(5)
    rows, draws = 800, 300
    law = np.column_stack([1 - (p := generator.beta(2, 2, rows)), p])
    values, floors = [], []
    for _ in range(draws):
        truth = (generator.random(rows) < law[:, 1]).astype(int)
        utility = assess(predictions(law), world_of({"y": truth}, [2]), "y", draws=20)
        values.append(utility.calibration.value)
        floors.append(utility.calibration.baseline)
    error = np.std(values, ddof=1) / np.sqrt(draws)
    # the normal law of a bin's sum is good to a few per cent
    assert abs(np.mean(values) - np.mean(floors)) < 4 * error + 0.03 * np.mean(floors)


def test_intervals_are_those_of_a_plain_bootstrap():
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(2)
    rows = 300
    scores = generator.random(rows)
    truth = (generator.random(rows) < scores).astype(int)
    found = np.column_stack([1 - scores, scores])
    utility = assess(predictions(found), world_of({"y": truth}, [2]), "y", draws=2000, seed=1)
    plain = []
    for _ in range(2000):
        drawn = generator.integers(0, rows, rows)
        plain.append(
            (
                roc_auc_score(truth[drawn], scores[drawn]),
                np.mean((found.argmax(axis=1) == truth)[drawn]),
                np.mean((scores - truth)[drawn] ** 2),
            )
        )
    low, high = np.quantile(plain, [0.025, 0.975], axis=0)
    figures = (utility.auc, utility.accuracy, utility.brier)
    for place, figure in enumerate(figures):
        width = high[place] - low[place]
        assert abs(figure.low - low[place]) < 0.15 * width
        assert abs(figure.high - high[place]) < 0.15 * width
        assert figure.low < figure.value < figure.high


def test_many_score_levels_change_an_interval_by_next_to_nothing(monkeypatch):
    generator = np.random.default_rng(3)
    rows = 5000
    scores = generator.random(rows)
    truth = (generator.random(rows) < scores).astype(int)
    world = world_of({"y": truth}, [2])
    found = predictions(np.column_stack([1 - scores, scores]))
    coarse = assess(found, world, "y", draws=50).auc
    monkeypatch.setattr("core.audit.utility.LEVELS", 10**9)
    exact = assess(found, world, "y", draws=50).auc
    assert coarse.value == exact.value
    assert coarse.low == pytest.approx(exact.low, abs=2e-5)
    assert coarse.high == pytest.approx(exact.high, abs=2e-5)


# -- learning ---------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["logistic", "boosting"])
@pytest.mark.parametrize("encoding", ["one-hot", "codes"])
def test_a_known_law_is_learnt(learner, encoding):
    world, _ = signal(6000, seed=1)
    fresh, law = signal(6000, seed=2)
    model = train(world, "y", ["a", "b"], learner=learner, encoding=encoding)
    found = model.probabilities(fresh)
    assert found.shape == (6000, 2)
    assert np.allclose(found.sum(axis=1), 1)
    best = area_under_curve(law, fresh.codes["y"] == 1)
    utility = evaluate(model, fresh, draws=20)
    assert utility.auc.value == pytest.approx(best, abs=0.01)
    if encoding == "one-hot":  # codes cannot say that b matters at 2 alone
        assert np.abs(found[:, 1] - law).mean() < 0.02
    assert (model.decisions(fresh) == found.argmax(axis=1)).all()


def test_the_logistic_regression_on_codes_is_the_papers():
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    world, _ = signal(800)
    matrix = np.column_stack([world.codes["a"], world.codes["b"]]).astype(float)
    plain = LogisticRegression(max_iter=500).fit(
        StandardScaler().fit_transform(matrix), world.codes["y"]
    )
    expected = plain.predict_proba(StandardScaler().fit_transform(matrix))
    found = train(world, "y", ["a", "b"], encoding="codes").probabilities(world)
    assert np.allclose(found, expected, atol=1e-6)


def test_indicators_have_one_column_a_cell():
    world = random_world(np.random.default_rng(0), 40, (3, 5))
    matrix = learning._indicators(world, ("c0", "c1")).toarray()
    assert matrix.shape == (40, 8)
    expected = np.hstack([np.eye(3)[world.codes["c0"]], np.eye(5)[world.codes["c1"]]])
    assert (matrix == expected).all()


@pytest.mark.parametrize("learner", ["logistic", "boosting"])
def test_no_row_is_tested_by_a_model_that_saw_it(learner):
    # Labels are coin flips, and a column names every third row: whoever memorises is found out.
    generator = np.random.default_rng(4)
    rows = 900
    world = world_of(
        {"name": np.arange(rows) // 3, "y": generator.integers(0, 2, rows)}, [rows // 3, 2]
    )
    seen = evaluate(train(world, "y", ["name"], learner=learner), world, draws=20)
    fair = assess(cross_fit(world, "y", ["name"], learner=learner), world, "y", draws=20)
    assert 0.42 < fair.auc.value < 0.58
    if learner == "logistic":
        assert seen.auc.value > 0.7


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 80), st.integers(2, 5))
def test_folds_spread_every_class(seed, rows, folds):
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, 3, rows)
    fold = deal(truth, folds, generator)
    assert fold.min() >= 0
    assert fold.max() < folds
    sizes = np.bincount(fold, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    for cell in range(3):
        held = np.bincount(fold[truth == cell], minlength=folds)
        assert held.max() - held.min() <= 1


@pytest.mark.parametrize("learner", ["logistic", "boosting"])
def test_the_same_seed_gives_the_same_figures(learner):
    world, _ = signal(500)
    one, two = (
        assess(cross_fit(world, "y", ["a", "b"], learner=learner, seed=3), world, "y", seed=3)
        for _ in range(2)
    )
    assert one == two


# -- where there is little to say --------------------------------------------------------------


def test_one_class_gives_reasons_and_no_warning():
    world = world_of({"a": np.arange(60) % 3, "y": np.zeros(60, dtype=int)}, [3, 2])
    model = train(world, "y", ["a"])
    assert (model.probabilities(world) == [1.0, 0.0]).all()
    utility = evaluate(model, world)
    assert utility.auc.value is None
    assert "same outcome" in utility.auc.reason
    assert utility.accuracy.value == 1.0
    assert utility.brier.value == 0.0


def test_a_class_that_training_never_saw_has_probability_zero():
    generator = np.random.default_rng(0)
    a = generator.integers(0, 3, 300)
    world = world_of({"a": a, "y": a % 2}, [3, 3])
    other = world_of({"a": a, "y": generator.integers(0, 3, 300)}, [3, 3])
    for learner in ("logistic", "boosting"):
        model = train(world, "y", ["a"], learner=learner)
        found = model.probabilities(other)
        assert (found[:, 2] == 0).all()
        utility = evaluate(model, other, draws=20)
        assert "3 classes" in utility.auc.reason
        assert 0 < utility.accuracy.value < 1


def test_cells_that_training_never_saw_can_be_predicted_from():
    world = world_of({"a": np.arange(80) % 2, "y": np.arange(80) % 2}, [4, 2])
    other = world_of({"a": np.full(30, 3), "y": np.arange(30) % 2}, [4, 2])
    for learner in ("logistic", "boosting"):
        found = train(world, "y", ["a"], learner=learner).probabilities(other)
        assert np.isfinite(found).all()


@pytest.mark.parametrize("rows", [0, 1, 5, 19])
def test_tiny_tables_predict_shares_and_say_so(rows):
    generator = np.random.default_rng(rows)
    world = random_world(generator, rows, (3, 2))
    model = train(world, "c1", ["c0"])
    assert "fewer than 20 rows" in model.notes[0]
    utility = assess(cross_fit(world, "c1", ["c0"]), world, "c1")
    assert utility.auc.value is None
    assert utility.auc.reason
    if rows:
        assert utility.accuracy.value is not None
    else:
        assert utility.accuracy.value is None


def test_rare_classes_are_left_out_of_ranking_and_counted():
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 3, 200)
    truth[truth == 2] = 0
    truth[:4] = 2
    found = random_predictions(generator, 200, 3)
    utility = assess(predictions(found), world_of({"y": truth}, [3]), "y", draws=20)
    assert "1 classes of fewer than 10 rows left out" in utility.auc.reason


def test_no_column_left_is_a_guess():
    world, _ = signal(100)
    model = train(world, "y", [])
    assert "no column" in model.notes[0]
    assert evaluate(model, world, draws=20).auc.value == 0.5


def test_a_fit_that_does_not_settle_says_so(monkeypatch):
    monkeypatch.setattr(learning, "STEPS", 1)
    world, _ = signal(400)
    utility = assess(cross_fit(world, "y", ["a", "b"]), world, "y", draws=20)
    assert "did not settle in 1 steps" in utility.auc.reason


def test_a_numeric_outcome_is_predicted_in_bins_and_says_so():
    generator = np.random.default_rng(0)
    pay = Column("pay", Kind.REAL, lower=0, upper=10, bins=3)
    codes = {"a": generator.integers(0, 3, 300), "pay": generator.integers(0, 3, 300)}
    world = world_of(codes, [labelled("a", 3), pay])
    utility = assess(cross_fit(world, "pay", ["a"]), world, "pay", draws=20)
    assert "declared bins" in utility.auc.reason
    assert "3 classes" in utility.auc.reason


def test_wrong_calls_are_refused():
    world, _ = signal(50)
    for refused in (
        lambda: train(world, "y", ["a"], learner="forest"),
        lambda: train(world, "y", ["a"], encoding="letters"),
        lambda: train(world, "y", ["nobody"]),
        lambda: train(world, "nobody", ["a"]),
        lambda: train(world, "y", ["a", "y"]),
        lambda: cross_fit(world, "y", ["a"], folds=1),
    ):
        with pytest.raises(EstimationError):
            refused()


# -- what real rows touched is private ---------------------------------------------------------


def test_real_rows_in_training_or_testing_make_figures_private():
    world, _ = signal(200)
    real = world_of(dict(world.codes), [3, 4, 2], private=True)
    for trained, tested, private in (
        (world, world, False),
        (real, world, True),
        (world, real, True),
        (real, real, True),
    ):
        utility = evaluate(train(trained, "y", ["a", "b"]), tested, draws=20)
        assert [figure.private for figure in utility.figures] == [private] * 4
    assert cross_fit(real, "y", ["a"]).private


def test_models_stay_in_the_process():
    world, _ = signal(100)
    for thing in (train(world, "y", ["a"]), cross_fit(world, "y", ["a"])):
        for away in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                away(thing)
