"""Fairness of an outcome in one world, and of decisions made about its rows.

A missing group is a group of its own, with its declared label, and so is a missing outcome a class
of its own.  Every gap is shown with its sign and both groups; averages are over absolute gaps, so
that one group's advantage never cancels another's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from core.audit.fairness_findings import (
    ClassDecisions,
    ClassFairness,
    ColumnFairness,
    DecisionFairness,
    OutcomeFairness,
    group_columns,
)
from core.audit.gaps import Labelled, Manner, group_gap, group_rates, within_gaps
from core.audit.information import information_interval, permutation_test, rule_codes
from core.audit.worlds import World
from core.column import require_columns
from core.errors import EstimationError
from core.kinds import Kind
from core.roles import Constraint, quoted
from core.schema import Column

__all__ = [
    "ClassDecisions",
    "ClassFairness",
    "ColumnFairness",
    "DecisionFairness",
    "OutcomeFairness",
    "decision_fairness",
    "favourable_code",
    "group_columns",
    "outcome_fairness",
]

IntArray = NDArray[np.int64]


def outcome_fairness(
    world: World,
    rule: Constraint,
    *,
    minimum: int = 10,
    favourable: Mapping[str, str] | None = None,
    permutations: int = 200,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> OutcomeFairness:
    """How the outcomes of a rule are spread over its protected groups, in one world.

    Parameters
    ----------
    world
        Rows.
    rule
        Protected columns (several make joint groups; proxies make none), outcomes, admissible
        columns.
    minimum
        Groups, and groups within an admissible cell, of fewer rows are left out and counted.
    favourable
        Label of the class to look at, by outcome column.  By default the true one of a yes/no
        column, the last declared cell of another binary column, and every class of any other.
    permutations, draws, level, seed
        Of the permutation floor and the bootstrap.

    Raises
    ------
    EstimationError
        When the rule has no protected or outcome column, or no class has the favourable label.
    SchemaError
        When the world lacks one of its columns.

    Notes
    -----
    Costs nothing; private when the world is.  Demographic parity: Dwork et al. (2012), "Fairness
    through awareness"; gaps within admissible cells: conditional statistical parity, Corbett-Davies
    et al. (2017), "Algorithmic decision making and the cost of fairness".
    """
    wanted = dict(favourable or {})
    groups, strata, manner = _prepare(
        world, rule, minimum=minimum, draws=draws, level=level, seed=seed
    )
    columns = []
    for name in sorted(rule.outcome):
        column, codes = world.schema[name], world.codes[name]
        held = np.bincount(codes, minlength=column.size)
        reason = ""
        if world.rows == 0:
            reason = f"no rows in the {world.name}"
        elif np.count_nonzero(held) == 1:
            reason = f"{name!r} has one value only, so there is nothing to compare"
        chosen = [] if reason else _classes(column, held, wanted.get(name))
        classes = tuple(
            ClassFairness(
                column.cells[code],
                group_rates(codes == code, groups, minimum),
                group_gap(codes == code, groups, manner),
                within_gaps(codes == code, groups, strata, tuple(sorted(rule.admissible)), manner),
            )
            for code in chosen
        )
        columns.append(ColumnFairness(name, classes, _caveat(column, held), reason))
    codes_of_rule = rule_codes(world, rule)
    return OutcomeFairness(
        rule=rule,
        world=world.name,
        private=world.private,
        rows=world.rows,
        columns=tuple(columns),
        information=permutation_test(*codes_of_rule, permutations=permutations, seed=seed),
        interval=information_interval(*codes_of_rule, draws=draws, level=level, seed=seed),
        level=level,
    )


def decision_fairness(
    world: World,
    decisions: IntArray,
    rule: Constraint,
    *,
    outcome: str | None = None,
    minimum: int = 10,
    favourable: str | None = None,
    permutations: int = 200,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
    private: bool = False,
) -> DecisionFairness:
    """How decisions about a world's rows treat the protected groups of a rule.

    Parameters
    ----------
    world
        Rows, with the outcome that came true.
    decisions
        (rows,) decided cell of the outcome column.
    rule
        Protected and admissible columns, and the outcome.
    outcome
        Which of the rule's outcome columns was decided; needed when it has several.
    minimum, favourable, permutations, draws, level, seed
        As in :func:`outcome_fairness`.  True (false) positive rates need ``minimum`` rows of the
        class (of other classes) in a group.
    private
        Whether the decisions are a model's that was trained on real rows.

    Raises
    ------
    EstimationError
        When the decisions do not fit the rows or the column's cells, or it is unclear which
        column they are about.
    SchemaError
        When the world lacks one of the rule's columns.

    Notes
    -----
    Costs nothing; private when the world or the model is.  Equalised odds: Hardt, Price and Srebro
    (2016), "Equality of opportunity in supervised learning".  Rows whose outcome is missing count
    in no error rate.
    """
    groups, strata, manner = _prepare(
        world, rule, minimum=minimum, draws=draws, level=level, seed=seed
    )
    name = _decided(rule, outcome)
    column, truth = world.schema[name], world.codes[name]
    decided = np.asarray(decisions)
    if decided.shape != (world.rows,):
        raise EstimationError(f"decisions on {name!r}: one a row is needed")
    if world.rows and not (decided.min() >= 0 and decided.max() < column.size):
        raise EstimationError(f"decisions on {name!r}: not a cell of the column")
    held = np.bincount(truth, minlength=column.size)
    given = np.bincount(decided.astype(np.int64), minlength=column.size)
    known = np.ones(world.rows, dtype=np.bool_)
    if column.missing_code is not None and column.missing_code >= column.declared_size:
        known = truth != column.missing_code
    reason = "" if world.rows else f"no rows in the {world.name}"
    admissible = tuple(sorted(rule.admissible))

    def look(code: int) -> ClassDecisions:
        event, of_it = decided == code, truth == code
        return ClassDecisions(
            column.cells[code],
            group_rates(event, groups, minimum),
            group_gap(event, groups, manner),
            within_gaps(event, groups, strata, admissible, manner),
            group_gap(event[of_it], groups.take(of_it), manner),
            group_gap(event[known & ~of_it], groups.take(known & ~of_it), manner),
        )

    chosen = [] if reason else _classes(column, held + given, favourable)
    caveat = _caveat(column, held)
    if np.count_nonzero(given) == 1:
        caveat = "; ".join(part for part in (caveat, "every decision is the same") if part)
    coded = (decided, world.joint(sorted(rule.protected)), strata.codes)
    return DecisionFairness(
        rule=rule,
        world=world.name,
        private=world.private or private,
        rows=world.rows,
        outcome=name,
        classes=tuple(look(code) for code in chosen),
        information=permutation_test(*coded, permutations=permutations, seed=seed),
        interval=information_interval(*coded, draws=draws, level=level, seed=seed),
        level=level,
        caveat=caveat,
        reason=reason,
    )


# -- parts -------------------------------------------------------------------------------------


def _prepare(
    world: World, rule: Constraint, *, minimum: int, draws: int, level: float, seed: int
) -> tuple[Labelled, Labelled, Manner]:
    """Groups, strata and the manner of measuring; refuses a rule that asks for nothing."""
    if not rule.is_active:
        raise EstimationError(f"rule {rule.name!r}: it names no protected or no outcome column")
    require_columns(sorted(rule.columns), world.schema.names)
    groups = Labelled.of(world, group_columns(rule))
    strata = Labelled.of(world, sorted(rule.admissible))
    return groups, strata, Manner(minimum, draws, level, np.random.default_rng(seed))


def _decided(rule: Constraint, outcome: str | None) -> str:
    """The outcome column that decisions are about."""
    if outcome is None and len(rule.outcome) == 1:
        return next(iter(rule.outcome))
    if outcome is None or outcome not in rule.outcome:
        raise EstimationError(
            f"rule {rule.name!r}: say which outcome was decided: {quoted(rule.outcome, 'or')}"
        )
    return outcome


def favourable_code(column: Column) -> int | None:
    """The favourable cell of a binary column by default, None where there are more classes.

    >>> favourable_code(Column("sick", Kind.BOOLEAN, categories=("yes", "no")))
    0
    >>> favourable_code(Column("grade", Kind.ORDINAL, categories=("fail", "pass")))
    1
    >>> favourable_code(Column("grade", Kind.ORDINAL, categories=("C", "B", "A")))
    """
    if column.kind is Kind.BOOLEAN:
        return column.truth_codes[1]
    return 1 if column.declared_size == 2 else None


def _classes(column: Column, held: IntArray, favourable: str | None) -> list[int]:
    """Codes of the classes to look at."""
    if favourable is not None:
        if favourable not in column.cells:
            raise EstimationError(f"outcome {column.name!r} has no class called {favourable!r}")
        return [column.cells.index(favourable)]
    code = favourable_code(column)
    return [int(one) for one in np.flatnonzero(held)] if code is None else [code]


def _caveat(column: Column, held: IntArray) -> str:
    """What a reader should know about an outcome's cells."""
    parts = []
    widths = np.diff(column.axis)
    if len(widths) and (column.kind is Kind.REAL or widths.max() > 1):
        parts.append(f"{column.name!r} is numeric: classes are its declared cells")
    missing = column.missing_code
    if missing is not None and missing >= column.declared_size and held[missing]:
        share = held[missing] / held.sum()
        parts.append(f"{share:.1%} of the outcomes are missing and count as a class of their own")
    return "; ".join(parts)
