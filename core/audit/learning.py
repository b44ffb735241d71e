"""Models trained on coded rows, one outcome column at a time, on one thread."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from core.audit.settings import LEARNERS
from core.audit.worlds import World
from core.errors import EstimationError
from core.kinds import Kind
from core.schema import Column

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ENCODINGS = ("one-hot", "codes")
#: Fewer rows than this train no model: it would predict the outcome's shares.
LEAST_ROWS = 20
#: Steps of the logistic regression; scaled columns converge long before.
STEPS = 500
#: Trees of gradient boosting in all; several outcome classes share them.
TREES = 120
LEAVES = 16
#: scikit-learn's limit on the categories of one column.
MOST_CATEGORIES = 255


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """What a model says about the rows of one world.

    Attributes
    ----------
    probabilities
        Shape (rows, cells of the outcome); each row sums to 1.
    constant
        Shares of the outcome's cells among the training rows: what a guess without features says.
    private
        True when real rows were trained or tested on.
    notes
        What a reader should know: one class only, not converged.
    """

    probabilities: FloatArray
    constant: FloatArray
    private: bool
    notes: tuple[str, ...] = ()

    @property
    def decisions(self) -> IntArray:
        """Most probable cell of each row; the first one among equals."""
        return np.asarray(self.probabilities.argmax(axis=1), dtype=np.int64)

    def __reduce_ex__(self, _: SupportsIndex) -> NoReturn:
        """Predictions about real rows stay where they were made."""
        raise TypeError("predictions can be neither copied nor pickled")


@dataclass(frozen=True, eq=False, repr=False)
class Predictor:
    """A trained model.

    Attributes
    ----------
    outcome, features
        Column names.
    learner, encoding
        ``logistic`` or ``boosting``; ``one-hot`` or ``codes``.
    classes
        Cells of the outcome that occurred in training, ascending.
    constant
        Their shares over all cells of the outcome.
    private
        True when it was trained on real rows.
    notes
        What a reader should know: one class only, not converged.
    """

    outcome: str
    features: tuple[str, ...]
    learner: str
    encoding: str
    classes: IntArray
    constant: FloatArray
    private: bool
    notes: tuple[str, ...]
    _design: Callable[[World], Any]
    _model: Any

    def __reduce_ex__(self, _: SupportsIndex) -> NoReturn:
        """A model of real rows stays where it was made."""
        raise TypeError("a trained model can be neither copied nor pickled")

    def probabilities(self, world: World) -> FloatArray:
        """Shape (rows, cells of the outcome); cells that training never saw have probability 0."""
        if self._model is None or not world.rows:
            return np.tile(self.constant, (world.rows, 1))
        found = np.zeros((world.rows, len(self.constant)))
        with one_thread():
            found[:, self.classes] = self._model.predict_proba(self._design(world))
        return found

    def decisions(self, world: World) -> IntArray:
        """Most probable cell of each row."""
        return self.predict(world).decisions

    def predict(self, world: World) -> Predictions:
        """Both, with what a reader should know."""
        private = self.private or world.private
        return Predictions(self.probabilities(world), self.constant, private, self.notes)


def train(
    world: World,
    outcome: str,
    features: Sequence[str],
    *,
    learner: str = "logistic",
    encoding: str = "one-hot",
    seed: int = 0,
) -> Predictor:
    """Train a model of one outcome column.

    Parameters
    ----------
    world
        Rows to train on.
    outcome, features
        Columns; every cell of the outcome (bins of a number, missing) is a class of its own.
    learner
        ``logistic``: logistic regression with an L2 penalty of 1 (scikit-learn's default);
        ``boosting``: histogram gradient boosting, trees of at most 16 leaves.
    encoding
        ``one-hot``: one indicator a cell (boosting: native categories); ``codes``: cell numbers as
        numbers, standardised for the logistic regression, as in the papers' experiments.
    seed
        Seed of the learner.

    Raises
    ------
    EstimationError
        An unknown learner, encoding or column, or the outcome among the features.
    """
    _check(world, outcome, features, learner, encoding)
    truth = world.codes[outcome].astype(np.int64)
    classes = np.unique(truth)
    reason = _no_model(world.rows, classes, features)
    design: Callable[[World], Any] = _nothing
    model = None
    notes: tuple[str, ...] = (reason,) if reason else ()
    if not reason:
        design = _design(world, tuple(features), learner, encoding)
        if learner == "logistic":
            model, notes = _logistic(design(world), truth)
        else:
            nominal = [encoding == "one-hot" and _nominal(world.schema[name]) for name in features]
            model = _boosting(design(world), truth, nominal, seed)
    return Predictor(
        outcome,
        tuple(features),
        learner,
        encoding,
        classes,
        _constant(world, outcome),
        world.private,
        notes,
        design,
        model,
    )


def cross_fit(
    world: World,
    outcome: str,
    features: Sequence[str],
    *,
    learner: str = "logistic",
    encoding: str = "one-hot",
    folds: int = 3,
    seed: int = 0,
) -> Predictions:
    """Predictions for every row by a model that did not see it.

    Rows are dealt to folds at random within each class of the outcome.  ``constant`` holds the
    shares of all rows.

    Raises
    ------
    EstimationError
        Fewer than two folds, and as :func:`train`.
    """
    if folds < 2:
        raise EstimationError("cross-fitting needs at least two folds")
    _check(world, outcome, features, learner, encoding)
    fold = deal(world.codes[outcome].astype(np.int64), folds, np.random.default_rng(seed))
    probabilities = np.zeros((world.rows, world.size(outcome)))
    notes: dict[str, None] = {}
    for index in range(folds):
        tested = fold == index
        if not tested.any():
            continue
        model = train(
            world.take(~tested), outcome, features, learner=learner, encoding=encoding, seed=seed
        )
        probabilities[tested] = model.probabilities(world.take(tested))
        notes.update(dict.fromkeys(model.notes))
    constant = _constant(world, outcome)
    return Predictions(probabilities, constant, world.private, tuple(notes))


def deal(truth: IntArray, folds: int, generator: np.random.Generator) -> IntArray:
    """A fold for every row: random, and every class spread over the folds as evenly as it goes."""
    order = generator.permutation(len(truth))
    order = order[np.argsort(truth[order], kind="stable")]
    fold = np.empty(len(truth), dtype=np.int64)
    fold[order] = np.arange(len(truth)) % folds
    return fold


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which numerical libraries use one thread: a page shares its machine."""
    from threadpoolctl import threadpool_limits

    from core.blas import one_blas_thread

    # OpenMP counts threads for each caller by itself; BLAS for the whole process.
    with one_blas_thread(), threadpool_limits(limits=1, user_api="openmp"):
        yield


# -- details ---------------------------------------------------------------------------------


def _check(
    world: World, outcome: str, features: Sequence[str], learner: str, encoding: str
) -> None:
    if learner not in LEARNERS:
        raise EstimationError(f"no learner is called {learner!r}; choose {' or '.join(LEARNERS)}")
    if encoding not in ENCODINGS:
        raise EstimationError(
            f"no encoding is called {encoding!r}; choose {' or '.join(ENCODINGS)}"
        )
    for name in (outcome, *features):
        if name not in world.schema:
            raise EstimationError(f"column {name!r} is not among the audited columns")
    if outcome in features:
        raise EstimationError(f"column {outcome!r} cannot predict itself")


def _constant(world: World, outcome: str) -> FloatArray:
    """Shares of an outcome's cells; without rows every cell is as likely as any other."""
    size = world.size(outcome)
    if not world.rows:
        return np.full(size, 1.0 / size)
    return np.bincount(world.codes[outcome], minlength=size) / world.rows


def _no_model(rows: int, classes: IntArray, features: Sequence[str]) -> str:
    """Why there is nothing to train, or an empty text."""
    if rows < LEAST_ROWS:
        return f"fewer than {LEAST_ROWS} rows to train on"
    if len(classes) < 2:
        return "all training rows have the same outcome"
    if not features:
        return "no column is left to predict from"
    return ""


def _nothing(world: World) -> Any:
    """Design of a model without features."""
    return None


def _nominal(column: Column) -> bool:
    """Whether the order of the cells means nothing, and boosting can take them as categories."""
    ordered = column.is_numeric or column.kind in (Kind.DATE, Kind.ORDINAL, Kind.BOOLEAN)
    return not ordered and column.size <= MOST_CATEGORIES


def _design(
    world: World, features: tuple[str, ...], learner: str, encoding: str
) -> Callable[[World], Any]:
    """From the rows of a world to a model's matrix."""
    if learner == "boosting":
        return lambda rows: np.column_stack([rows.codes[name] for name in features]).astype(float)
    if encoding == "one-hot":
        return lambda rows: _indicators(rows, features)
    codes = np.column_stack([world.codes[name] for name in features]).astype(float)
    middle, spread = codes.mean(axis=0), codes.std(axis=0)
    spread[spread == 0] = 1.0
    return lambda rows: (np.column_stack([rows.codes[name] for name in features]) - middle) / spread


def _indicators(world: World, features: tuple[str, ...]) -> Any:
    """Sparse matrix with one column a cell, one 1 a row and feature."""
    from scipy.sparse import csr_array

    sizes = [world.size(name) for name in features]
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    places = np.column_stack([world.codes[name] for name in features]).astype(np.int64) + starts
    ends = np.arange(world.rows + 1) * len(features)
    shape = (world.rows, sum(sizes))
    return csr_array((np.ones(places.size), places.ravel(), ends), shape=shape)


def _boosting(matrix: Any, truth: IntArray, nominal: list[bool], seed: int) -> Any:
    """Few small trees; classes share them, so that many classes cost no more."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=max(10, TREES // max(2, len(np.unique(truth)))),
        learning_rate=0.15,
        max_leaf_nodes=LEAVES,
        categorical_features=nominal if any(nominal) else None,
        early_stopping=False,
        random_state=seed,
    )
    with one_thread():
        model.fit(matrix, truth)
    return model


def _logistic(matrix: Any, truth: IntArray) -> tuple[Any, tuple[str, ...]]:
    """The fitted model, and a note when the fit did not settle."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=STEPS)
    with one_thread(), warnings.catch_warnings():
        # not swallowed: what the warning says becomes a note of the figures
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(matrix, truth)
    if int(np.max(model.n_iter_)) >= STEPS:
        return model, (f"the logistic regression did not settle in {STEPS} steps",)
    return model, ()
