"""What a synthetic table is worth, by the papers' definitions: one function for every method.

Fidelity: Kullback-Leibler divergence (natural logarithm, 1e-12 added to every cell) and total
variation on the joint of all columns.  Fairness of the rows: plug-in I(O; S | A) in bits, and the
same minus its permutation floor.  Utility: AUC on the real test fold of models trained on the
synthetic rows.  Fairness of the models' decisions there: differences between protected groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import ResearchTable
from core.audit.distances import joint_distance
from core.audit.gaps import RateTable
from core.audit.information import rule_information
from core.audit.learning import train
from core.audit.worlds import World
from core.private.table import CodedTable
from core.roles import Constraint, Roles

Codes = Mapping[str, NDArray[Any]]

#: Shuffles behind the floor of the conditional information.
PERMUTATIONS = 40
#: Groups of fewer rows (of either outcome, where that matters) are left out of differences.
MINIMUM = 10


@dataclass(frozen=True, eq=False)
class Fold:
    """A training fold, a test fold, and the true scores of the training fold's pairs."""

    train: World
    test: World
    roles: Roles
    coded: CodedTable
    scores: Mapping[tuple[str, str], float]

    @classmethod
    def of(
        cls,
        training: ResearchTable,
        test: ResearchTable,
        scores: Mapping[tuple[str, str], float],
    ) -> Fold:
        """From two parts of a public table."""
        return cls(
            world("training fold", training),
            world("test fold", test),
            training.roles,
            coded(training),
            scores,
        )

    @property
    def rule(self) -> Constraint:
        """The table's one constraint."""
        (rule,) = self.roles.constraints
        return rule

    @property
    def outcome(self) -> str:
        """The column to predict."""
        (outcome,) = self.rule.outcome
        return outcome

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """Protected group of every test row."""
        return self.test.joint(sorted(self.rule.protected))

    @cached_property
    def strata(self) -> NDArray[np.int64]:
        """Admissible stratum of every test row."""
        return self.test.joint(sorted(self.rule.admissible))


def coded(table: ResearchTable) -> CodedTable:
    """In the form that a vault takes."""
    codes = {
        name: column.astype(np.min_scalar_type(table.schema[name].size))
        for name, column in table.codes.items()
    }
    return CodedTable(table.schema, codes, {}, table.rows)


def world(name: str, table: ResearchTable) -> World:
    """The world of a public table, which is none of anybody's secrets."""
    return World(name, table.schema, table.codes, table.rows, private=False)


def measure(fold: Fold, codes: Codes) -> dict[str, float | None]:
    """Every figure but the tree's score of one synthetic table."""
    rows = len(next(iter(codes.values())))
    made = World("synthetic rows", fold.train.schema, dict(codes), rows, private=False)
    distance = joint_distance(fold.train, made)
    unseen = joint_distance(fold.test, made)
    information = rule_information(made, fold.rule, permutations=PERMUTATIONS)
    features = [name for name in fold.train.schema.names if name != fold.outcome]
    blind = [name for name in features if name not in fold.rule.protected]
    logistic = train(made, fold.outcome, features, encoding="codes")
    decisions = logistic.decisions(fold.test)
    return {
        "kl": distance.kl,
        "tv": distance.tv,
        "kl_test": unseen.kl,
        "tv_test": unseen.tv,
        "cmi": information.bits,
        "floor": information.floor,
        "excess": information.excess,
        "auc": _auc(fold, logistic.probabilities(fold.test)),
        "auc_boosting": _auc(
            fold,
            train(made, fold.outcome, features, learner="boosting").probabilities(fold.test),
        ),
        "auc_blind": _auc(
            fold, train(made, fold.outcome, blind, encoding="codes").probabilities(fold.test)
        ),
        "odds": equalized_odds(fold.test.codes[fold.outcome], decisions, fold.groups),
        "parity": parity(decisions, fold.groups),
        "gap": within_gap(decisions, fold.groups, fold.strata),
        "rows": float(rows),
    }


def _auc(fold: Fold, probabilities: NDArray[np.float64]) -> float:
    from sklearn.metrics import roc_auc_score

    truth = fold.test.codes[fold.outcome]
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(truth, probabilities[:, 1]))
    seen = np.unique(truth)
    per_class = [roc_auc_score(truth == cell, probabilities[:, cell]) for cell in seen]
    return float(np.mean(per_class))


# -- differences between groups --------------------------------------------------------------


def parity(decisions: NDArray[Any], groups: NDArray[Any]) -> float | None:
    """Largest difference between two groups' shares of any decision (demographic parity)."""
    return within_gap(decisions, groups, np.zeros_like(groups))


def equalized_odds(
    truth: NDArray[Any], decisions: NDArray[Any], groups: NDArray[Any]
) -> float | None:
    """Largest difference between groups' true or false positive rates.

    Groups with fewer than ``MINIMUM`` rows of a class are left out of that class's rates.
    """
    gaps = []
    for cell in _shown(truth):
        for rows in (truth == cell, truth != cell):
            gaps.append(_gap((decisions == cell)[rows], groups[rows], np.zeros_like(groups[rows])))
    known = [gap for gap in gaps if gap is not None]
    return max(known) if known else None


def within_gap(decisions: NDArray[Any], groups: NDArray[Any], strata: NDArray[Any]) -> float | None:
    """Largest difference of groups' shares of a decision within strata of A, averaged over rows.

    Strata count where at least two groups have ``MINIMUM`` rows.
    """
    gaps = [_gap(decisions == cell, groups, strata) for cell in _shown(decisions)]
    known = [gap for gap in gaps if gap is not None]
    return max(known) if known else None


def _gap(event: NDArray[Any], groups: NDArray[Any], strata: NDArray[Any]) -> float | None:
    table = RateTable.of(event, groups, strata, minimum=MINIMUM)
    return float(table.mean_gap()) if len(table.starts) else None


def _shown(cells: NDArray[Any]) -> NDArray[Any]:
    """Cells whose events are looked at; one of two is enough."""
    found = np.unique(cells)
    return found[-1:] if len(found) <= 2 else found
