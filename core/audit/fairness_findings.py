"""What was found out about fairness, and its figures."""

from __future__ import annotations

from dataclasses import dataclass

from core.audit.figures import Figure
from core.audit.gaps import Gap, Measured, Rate, Unknown, WithinGaps
from core.audit.information import InformationTest
from core.audit.resampling import Interval
from core.roles import Constraint, quoted

SHUFFLED = "the same with the protected codes shuffled within the admissible cells"
DEALT = "the same with the outcomes dealt at random within the admissible cells"
DEALT_TO_GROUPS = "the same with the outcomes dealt to the groups at random"
#: Below this share of rows in comparable strata the information says little.
THIN = 0.5


def group_columns(rule: Constraint) -> tuple[str, ...]:
    """The columns whose combinations are the groups of a rule's gaps.

    Proxies are protected for the sake of what they carry; people are not grouped by them, unless
    the rule has nothing else.
    """
    return tuple(sorted(rule.protected - rule.proxies or rule.protected))


@dataclass(frozen=True, eq=False, repr=False)
class ClassFairness:
    """How one class of an outcome, or of decisions, is spread over the groups.

    Attributes
    ----------
    label
        The class.
    rates
        Its share in every group with enough rows.
    parity
        Widest gap between two of them: demographic parity.
    within
        Gaps within the admissible cells.
    """

    label: str
    rates: tuple[Rate, ...]
    parity: Measured
    within: WithinGaps

    @property
    def widest(self) -> float:
        """The size by which the headline class is chosen."""
        return _size(self.parity)


@dataclass(frozen=True, eq=False, repr=False)
class ClassDecisions(ClassFairness):
    """How decisions for one class treat the groups.

    Attributes
    ----------
    true_positive, false_positive
        Widest gap in the share of decisions for the class, among rows that are of it and among
        rows that are of another one.
    """

    true_positive: Measured
    false_positive: Measured

    @property
    def equalized_odds(self) -> Measured:
        """The wider of the two error gaps, never an average in which they could cancel."""
        for part in (self.true_positive, self.false_positive):
            if isinstance(part, Unknown):
                return part
        return max(self.true_positive, self.false_positive, key=_size)

    @property
    def mean_odds(self) -> float | None:
        """Mean of the two absolute error gaps."""
        if isinstance(self.true_positive, Gap) and isinstance(self.false_positive, Gap):
            return (self.true_positive.size + self.false_positive.size) / 2
        return None

    @property
    def widest(self) -> float:
        """The size by which the headline class is chosen."""
        return max(_size(self.true_positive), _size(self.false_positive))


@dataclass(frozen=True, eq=False, repr=False)
class ColumnFairness:
    """One outcome column.

    Attributes
    ----------
    outcome
        Its name.
    classes
        One entry a class that occurs; of a binary outcome the favourable one only.
    caveat
        What to know about its cells, or an empty text.
    reason
        Why there is nothing to compare, or an empty text.
    """

    outcome: str
    classes: tuple[ClassFairness, ...]
    caveat: str
    reason: str

    @property
    def headline(self) -> ClassFairness | None:
        """The favourable class of a binary outcome, else the one with the widest gap."""
        return max(self.classes, key=lambda one: one.widest, default=None)


@dataclass(frozen=True, eq=False, repr=False)
class OutcomeFairness:
    """A rule in one world.

    Attributes
    ----------
    rule
        Protected, outcome and admissible columns.
    world
        Name of the world.
    private
        True when it holds real rows.
    rows
        Rows looked at.
    columns
        One entry an outcome column.
    information
        I(O; S | A) of the sample beside its permutation floor; all outcome columns as one.
    interval
        Bootstrap interval of the information.
    level
        Coverage of all intervals.
    """

    rule: Constraint
    world: str
    private: bool
    rows: int
    columns: tuple[ColumnFairness, ...]
    information: InformationTest
    interval: Interval
    level: float

    @property
    def group_columns(self) -> tuple[str, ...]:
        """The columns whose combinations are the groups."""
        return group_columns(self.rule)

    def figures(self) -> tuple[Figure, ...]:
        """Parity and within gaps of every outcome column, and the rule's information."""
        found: list[Figure] = []
        for column in self.columns:
            key = f"fairness.{self.rule.name}.{column.outcome}"
            writer = Writer(key, column.outcome, self.private, self.level, column.caveat)
            found += writer.spread(column.headline, column.reason, "outcomes")
        writer = Writer(f"fairness.{self.rule.name}", "", self.private, self.level, "")
        title = f"Information on {quoted(self.rule.protected)} in {quoted(self.rule.outcome)}"
        found.append(writer.information(title, self.rule, self.information, self.interval))
        return tuple(found)


@dataclass(frozen=True, eq=False, repr=False)
class DecisionFairness:
    """Decisions about the rows of one world, under a rule.

    Attributes
    ----------
    rule, world, private, rows, level
        As in :class:`OutcomeFairness`.
    outcome
        The column that was predicted.
    classes
        One entry a class; of a binary outcome the favourable one only.
    information
        I(decision; S | A) beside its permutation floor.
    interval
        Its bootstrap interval.
    caveat, reason
        As in :class:`ColumnFairness`.
    """

    rule: Constraint
    world: str
    private: bool
    rows: int
    outcome: str
    classes: tuple[ClassDecisions, ...]
    information: InformationTest
    interval: Interval
    level: float
    caveat: str
    reason: str

    @property
    def headline(self) -> ClassDecisions | None:
        """The favourable class of a binary outcome, else the one with the widest error gap."""
        return max(self.classes, key=lambda one: one.widest, default=None)

    def figures(self) -> tuple[Figure, ...]:
        """Parity, equalised odds and both error gaps, gaps within cells, information."""
        key = f"fairness.{self.rule.name}.{self.outcome}.decisions"
        writer = Writer(key, self.outcome, self.private, self.level, self.caveat)
        head = self.headline
        found = writer.spread(head, self.reason, "decisions")
        nothing = Unknown(self.reason)
        for name, title, part in (
            ("equalized_odds", "Equalised odds gap", head.equalized_odds if head else nothing),
            ("true_positive", "True positive rate gap", head.true_positive if head else nothing),
            ("false_positive", "False positive rate gap", head.false_positive if head else nothing),
        ):
            found.append(writer.gap(name, f"{title} of decisions", head, part))
        title = f"Information on {quoted(self.rule.protected)} in decisions on {self.outcome!r}"
        found.append(writer.information(title, self.rule, self.information, self.interval))
        return tuple(found)


def _size(part: Measured) -> float:
    return part.size if isinstance(part, Gap) else -1.0


@dataclass(frozen=True, repr=False)
class Writer:
    """Figures under one key."""

    key: str
    outcome: str
    private: bool
    level: float
    caveat: str

    def spread(self, head: ClassFairness | None, reason: str, what: str) -> list[Figure]:
        """Parity and gaps within cells."""
        parity = head.parity if head else Unknown(reason)
        found = [self.gap("parity", f"Demographic parity gap of {what}", head, parity)]
        title = f"Gap of {what} within admissible cells"
        within = head.within if head else None
        if within is None or within.mean is None or not within.columns:
            why = reason if within is None else within.note
            if within is not None and not within.columns:
                why = "the rule has no admissible column: the parity gap says it all"
            found.append(self._missing("within", title, why))
            return found
        found.append(
            Figure(
                f"{self.key}.within",
                f"{title}, mean{self._of(head)}",
                within.mean,
                "share",
                self.private,
                low=within.low,
                high=within.high,
                level=self.level,
                baseline=within.chance,
                baseline_words=DEALT,
                reason=self._words(within.note),
            )
        )
        return found

    def gap(self, name: str, title: str, head: ClassFairness | None, part: Measured) -> Figure:
        """One widest gap; the sign and both groups stand in its words."""
        if isinstance(part, Unknown):
            return self._missing(name, title, part.reason)
        low, high = part.interval
        return Figure(
            f"{self.key}.{name}",
            f"{title}{self._of(head)}",
            part.size,
            "share",
            self.private,
            low=low,
            high=high,
            level=self.level,
            baseline=part.chance,
            baseline_words=DEALT_TO_GROUPS,
            reason=self._words(part.words, part.note),
        )

    def information(
        self, title: str, rule: Constraint, test: InformationTest, interval: Interval
    ) -> Figure:
        """Bits beside the permutation floor."""
        given = f" given {quoted(rule.admissible)}" if rule.admissible else ""
        title = f"{title}{given}"
        if test.reason:
            return self._missing("information", title, test.reason, "bits")
        share = test.informative_rows / test.rows
        thin = (
            f"only {share:.0%} of the rows lie in cells where groups can be compared"
            if share < THIN
            else ""
        )
        return Figure(
            f"{self.key}.information",
            title,
            test.bits,
            "bits",
            self.private,
            low=interval[0],
            high=interval[1],
            level=self.level,
            baseline=test.floor,
            baseline_words=SHUFFLED,
            reason=self._words(f"p = {test.p_value:.3f} against chance", thin),
        )

    def _missing(self, name: str, title: str, reason: str, unit: str = "share") -> Figure:
        return Figure(f"{self.key}.{name}", title, None, unit, self.private, reason=reason)

    def _of(self, head: ClassFairness | None) -> str:
        return f": {self.outcome} = {head.label}" if head else ""

    def _words(self, *parts: str) -> str:
        return "; ".join(part for part in (*parts, self.caveat) if part)
