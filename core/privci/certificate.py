"""What a tree proves about fairness: separation from its edges, and the model's own figure.

Nothing here knows how the edges were chosen: components are walked afresh from the released
edges, so a fault in selection cannot hide in its own certificate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import EstimationError
from core.privci.reconstruct import Fit
from core.privci.tree_model import TABLE_CAP, TreeModel
from core.releases import TreeRelease
from core.roles import Constraint, quoted

FloatArray = NDArray[np.float64]
Edge = tuple[str, str]

#: Conditional information below this many bits is rounding of floating-point sums.
ROUNDING = 1e-12
NOT_COMPUTED = "not computed, implied by separation"
TRANSFER = (
    "This holds in the synthetic world. A model trained on these rows may use columns on the "
    "outcome's side, and in the real world those can still carry the protected attribute: declare "
    "such a column a proxy, and look at the audit of the real table before you rely on it."
)


@dataclass(frozen=True)
class Component:
    """Columns that stay connected when the admissible ones are taken out."""

    columns: tuple[str, ...]
    protected: tuple[str, ...]
    outcome: tuple[str, ...]

    @property
    def clashes(self) -> bool:
        """True when it holds both a protected and an outcome column."""
        return bool(self.protected and self.outcome)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "columns": list(self.columns),
            "protected": list(self.protected),
            "outcome": list(self.outcome),
        }


@dataclass(frozen=True)
class SeparationProof:
    """One constraint against the edges: it holds when no component holds both sides."""

    constraint: Constraint
    components: tuple[Component, ...]

    @property
    def holds(self) -> bool:
        """True when every path from S to O passes through A."""
        return not any(component.clashes for component in self.components)

    @property
    def words(self) -> str:
        """The proof in a plain sentence."""
        rule = self.constraint
        if not rule.is_active:
            return f"{rule.name}: {rule.words}."
        if self.holds:
            return (
                f"{rule.name}: proved. Without its admissible columns the tree has "
                f"{_parts(len(self.components))}, and none holds both a protected and an outcome "
                f"column. In the model {quoted(rule.outcome)} is independent of "
                f"{quoted(rule.protected)}{_given(rule)}."
            )
        clash = next(part for part in self.components if part.clashes)
        return (
            f"{rule.name}: does not hold. {quoted(clash.protected)} and {quoted(clash.outcome)} "
            "are connected without passing through an admissible column."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "constraint": self.constraint.to_dict(),
            "holds": self.holds,
            "components": [component.to_dict() for component in self.components],
            "words": self.words,
        }


@dataclass(frozen=True)
class ModelFigure:
    """I(O; S | A) of the fitted model in bits, or why it was not computed."""

    constraint: str
    bits: float | None
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {"constraint": self.constraint, "cmi_bits": self.bits, "reason": self.reason}


def _parts(count: int) -> str:
    return "one part" if count == 1 else f"{count} parts"


def _bits(bits: float) -> str:
    """A figure as people read it; what is zero but for rounding is zero."""
    return "0" if abs(bits) < ROUNDING else f"{bits:.3g}"


@dataclass(frozen=True)
class Certificate:
    """Proofs for every constraint, and the model's figures when a fit was given."""

    structure: str
    edges: tuple[Edge, ...]
    separation: tuple[SeparationProof, ...]
    model: tuple[ModelFigure, ...]

    @property
    def holds(self) -> bool:
        """True when every constraint is proved (also when there is none)."""
        return all(proof.holds for proof in self.separation)

    @property
    def words(self) -> tuple[str, ...]:
        """Plain sentences, the caveat last."""
        if not self.separation:
            return ("No rule was declared, so nothing about fairness is proved.",)
        figures = [
            f"{figure.constraint}: conditional mutual information of the fitted model "
            + (f"{_bits(figure.bits)} bits." if figure.bits is not None else f"{figure.reason}.")
            for figure in self.model
        ]
        return (*(proof.words for proof in self.separation), *figures, TRANSFER)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "structure": self.structure,
            "edges": [list(edge) for edge in self.edges],
            "holds": self.holds,
            "separation": [proof.to_dict() for proof in self.separation],
            "model": [figure.to_dict() for figure in self.model],
            "words": list(self.words),
        }


def certificate(release: TreeRelease, fit: Fit | None = None) -> Certificate:
    """Check every declared constraint against a release's edges, and measure the fitted model.

    Parameters
    ----------
    release
        Edges and roles.
    fit
        With a fit the conditional mutual information is computed where tables stay small.

    Notes
    -----
    Costs nothing.  By the global Markov property separation implies independence in the model;
    opening merged cells and bins keeps it, because both look at one column at a time.
    """
    proofs = tuple(
        SeparationProof(rule, components(release.schema.names, release.edges, rule))
        for rule in release.roles.constraints
    )
    figures: tuple[ModelFigure, ...] = ()
    if fit is not None:
        figures = tuple(model_figure(fit.model, proof) for proof in proofs)
    return Certificate(release.structure, release.edges, proofs, figures)


def components(
    names: Iterable[str], edges: Sequence[Edge], constraint: Constraint
) -> tuple[Component, ...]:
    """Components of the graph without the admissible columns, sorted by their first name."""
    return tuple(
        Component(
            part,
            tuple(sorted(constraint.protected.intersection(part))),
            tuple(sorted(constraint.outcome.intersection(part))),
        )
        for part in connected(set(names) - constraint.admissible, edges)
    )


def connected(names: Collection[str], edges: Sequence[Edge]) -> tuple[tuple[str, ...], ...]:
    """Connected components of the subgraph on these names, each sorted."""
    neighbours: dict[str, set[str]] = {name: set() for name in names}
    for one, other in edges:
        if one in neighbours and other in neighbours:
            neighbours[one].add(other)
            neighbours[other].add(one)
    parts, seen = [], set()
    for start in sorted(neighbours):
        if start in seen:
            continue
        seen.add(start)
        part = [start]
        for name in part:  # grows while it is read
            fresh = neighbours[name] - seen
            seen |= fresh
            part.extend(fresh)
        parts.append(tuple(sorted(part)))
    return tuple(parts)


def model_figure(model: TreeModel, proof: SeparationProof, *, cap: int = TABLE_CAP) -> ModelFigure:
    """I(O; S | A) of the model by elimination, if no table passes ``cap`` cells.

    A proved constraint is verified on the joint table of S, O and the columns of A near them; the
    number should be 0 up to rounding.  Otherwise the figure is the sum over the components of
    V without A, which are independent of each other given A.
    """
    rule = proof.constraint
    try:
        if proof.holds:
            bits = _cmi(model, rule.outcome, rule.protected, _near(model, rule), cap)
        else:
            bits = sum(
                _cmi(model, part.outcome, part.protected, _border(model, part.columns), cap)
                for part in proof.components
                if part.clashes
            )
    except EstimationError:
        reason = NOT_COMPUTED if proof.holds else "not computed, the joint table is too large"
        return ModelFigure(rule.name, None, reason)
    return ModelFigure(rule.name, bits, None)


def _border(model: TreeModel, inside: Collection[str]) -> set[str]:
    """Columns outside that have an edge into the set."""
    ends = [(a, b) for pair in model.edge_names for a, b in (pair, pair[::-1])]
    return {b for a, b in ends if a in inside and b not in inside}


def _near(model: TreeModel, rule: Constraint) -> set[str]:
    """The columns of A that shield S or O: given them, the other ones of A say nothing."""
    free = set(model.columns) - rule.admissible
    near: set[str] = set()
    for part in connected(free, model.edge_names):
        if rule.protected.intersection(part) or rule.outcome.intersection(part):
            near |= _border(model, part)
    return near


def _cmi(
    model: TreeModel,
    outcome: Collection[str],
    protected: Collection[str],
    given: Collection[str],
    cap: int,
) -> float:
    """Conditional mutual information in bits of three groups of the model's columns."""
    groups = [
        sorted(set(group).intersection(model.columns)) for group in (outcome, protected, given)
    ]
    joint = model.project([name for group in groups for name in group], cap=cap)
    sizes = [
        int(np.prod([model.sizes[model.columns.index(name)] for name in group], dtype=np.int64))
        for group in groups
    ]
    return conditional_mutual_information(joint.reshape(sizes))


def conditional_mutual_information(joint: FloatArray) -> float:
    """I(X; Y | Z) in bits of a table with axes (X, Y, Z); never below 0.

    >>> table = np.array([[0.5, 0.0], [0.0, 0.5]])[:, :, None]
    >>> conditional_mutual_information(table)
    1.0
    """
    first, second = joint.sum(axis=1, keepdims=True), joint.sum(axis=0, keepdims=True)
    third = first.sum(axis=0, keepdims=True)
    positive = joint > 0
    whole = joint[positive]
    both = np.broadcast_to(first, joint.shape)[positive]
    other = np.broadcast_to(second, joint.shape)[positive]
    given = np.broadcast_to(third, joint.shape)[positive]
    # ratios first: products of small probabilities could underflow
    return max(0.0, float(whole @ np.log2((whole / both) * (given / other))))


def _given(rule: Constraint) -> str:
    return f" given {quoted(rule.admissible)}" if rule.admissible else ""
