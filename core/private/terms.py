"""What a vault hands to its grants: the terms of a charge, and a source that can be forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from core.errors import BudgetError
from core.private.source import Source
from core.protocols import Progress
from core.releases import Relation, Unit


@dataclass(frozen=True)
class GrantTerms:
    """The public facts of one charge, as they go into provenance."""

    what: str
    request_id: str
    population: str
    rho: Fraction
    relation: Relation
    unit: Unit
    delta: float
    simulated: bool
    flags: tuple[str, ...] = ()


class Confined:
    """What holds a way to rows stays where it is: it can be neither copied nor pickled."""

    def __reduce__(self) -> NoReturn:  # copy and deepcopy come through here too
        raise TypeError(f"a {type(self).__name__} stays in the process that opened the table")


class SourceSlot(Confined):
    """Holds a source for a vault and all of its grants, until the table is forgotten."""

    def __init__(self, source: Source) -> None:
        self._source: Source | None = source

    def get(self) -> Source:
        """The source, or a refusal when the table was forgotten."""
        if self._source is None:
            raise BudgetError("the table was forgotten; attach it again to measure")
        return self._source

    def watch(self, progress: Progress | None) -> None:
        """Whom the source tells while rows are read; nothing where the table was forgotten."""
        if self._source is not None:
            self._source.watch(progress)

    def forget(self) -> None:
        """Drop the reference to the rows."""
        self._source = None
