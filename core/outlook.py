"""What a whole plan will cost and buy, in words, before anything is charged; public facts only."""

from __future__ import annotations

from dataclasses import dataclass

from core.forecast import NO_PROTECTION_WORDS, Forecast, forecast
from core.pace.preview import preview_sentences
from core.plan import Plan
from core.promise import NO_PROTECTION, price_sentences, protects
from core.pumba.requests import StatisticsRequest, plan_request


@dataclass(frozen=True)
class Outlook:
    """Sentences and advice on a plan.

    Attributes
    ----------
    sentences
        First the price of all parts together, then what each part buys.
    suggestions
        What would help.
    flags
        ``no meaningful protection`` where the price promises next to nothing.
    tree
        The forecast of the tree, if the plan has one.
    """

    sentences: tuple[str, ...]
    suggestions: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    tree: Forecast | None = None


def outlook_for(plan: Plan) -> Outlook:
    """The outlook of a plan; reads no data and costs nothing.

    Raises
    ------
    BudgetError, PlanError, RolesError, SchemaError
        As the releases themselves would.
    """
    terms = plan.population
    sentences = list(price_sentences(plan.rho, terms.delta, terms.relation))
    warned = not protects(plan.rho)
    if warned:
        sentences.append(NO_PROTECTION_WORDS)
    tree = None
    if plan.tree is not None:
        tree = forecast(
            plan.schema,
            plan.roles,
            plan.tree.rho,
            structure=plan.tree.structure,
            split=plan.tree.split,
            relation=terms.relation,
            unit=terms.unit,
            expected_rows=terms.expected_rows,
        )
        sentences += [words for words in tree.sentences if words != NO_PROTECTION_WORDS]
    for request in requests_of(plan):
        sentences += [f"{request.spec.name}: {words}" for words in request.sentences]
    if plan.covariance is not None:
        sentences += preview_sentences(plan.covariance, plan.schema, terms)
    return Outlook(
        tuple(sentences),
        () if tree is None else tree.suggestions,
        (NO_PROTECTION,) if warned else (),
        tree,
    )


def requests_of(plan: Plan) -> tuple[StatisticsRequest, ...]:
    """What each analysis of a plan would measure, and how its price is split."""
    terms = plan.population
    return tuple(
        plan_request(
            part.spec,
            plan.schema,
            terms.relation,
            terms.unit,
            part.rho,
            expected_rows=terms.expected_rows,
        )
        for part in plan.posteriors
    )
