"""Whether the documents of a bundle agree with the release inside it."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from core.artefacts import free_files
from core.errors import BundleError
from core.free import Free
from core.machine import differences
from core.outcome import Releases
from core.plan import Plan, TreePlan
from core.private.accounts import SpendState
from core.privci.certificate import certificate
from core.privci.reconstruct import Fit
from core.provenance import Provenance
from core.releases import TreeRelease, digest
from core.schema import Schema

_ACCOUNT = {
    *("population", "relation", "unit", "cap_rho", "spent_rho", "remaining_rho", "delta"),
    *("chain_head", "spends"),
}
_SPEND = {"request_id", "what", "rho", "debited", "state", "charged_on", "release_sha256"}
_HASH = re.compile("[0-9a-f]{64}")
#: Figures of a fitted model may differ this much between machines, in bits.
TOLERANCE = 1e-6


def check_plan(plan: Plan, text: bytes, releases: Releases) -> None:
    """Terms, prices, roles, questions and declarations are those of the releases, and no more.

    A comment, or a declaration of a column that was not released, is no part of what was checked.
    """
    terms = plan.population
    found = releases.terms
    if releases.tree is not None and plan.tree is not None:
        _check_tree(plan, plan.tree, releases.tree)
    for part, statistics in zip(plan.posteriors, releases.statistics, strict=True):
        _check_part(plan, part.rho, statistics.provenance, statistics.schema)
        if part.spec != statistics.spec:
            raise BundleError(
                f"plan.toml asks {part.spec.name!r} in another way than what was measured for it"
            )
    if releases.covariance is not None and plan.covariance is not None:
        measured = releases.covariance
        _check_part(plan, plan.covariance.rho, measured.provenance, measured.schema)
        if not plan.covariance.describes(measured):
            raise BundleError("plan.toml names another covariance than the one that was measured")
    if (terms.name, terms.relation, terms.unit) != (found.population, found.relation, found.unit):
        raise BundleError("plan.toml names another population, relation or unit than the release")
    if plan.public().to_toml().encode() != text:
        raise BundleError(
            "plan.toml holds more than the public plan, or writes it in another form: comments, "
            "settings at their defaults, or declarations of columns that were not released"
        )


def _check_tree(plan: Plan, settings: TreePlan, release: TreeRelease) -> None:
    if plan.tree_schema.to_dict() != release.schema.to_dict() or plan.roles != release.roles:
        raise BundleError("plan.toml declares other columns or roles than the release")
    if (settings.rho, settings.structure, settings.split) != (
        release.provenance.rho,
        release.structure,
        release.split,
    ):
        raise BundleError("plan.toml names another price, split or structure than the release")


def _check_part(plan: Plan, rho: Fraction, found: Provenance, schema: Schema) -> None:
    names = schema.names
    known = set(names) <= set(plan.schema.names)
    if not known or plan.schema.select(names).to_dict() != schema.to_dict():
        raise BundleError("plan.toml declares other columns or roles than the release")
    if rho != found.rho:
        raise BundleError("plan.toml names another price, split or structure than the release")


def check_ledger(document: Mapping[str, Any], releases: Releases) -> None:
    """The account adds up, stays within its cap, and lists the charge of every release."""
    where = releases.terms
    try:
        spends = {str(spend["request_id"]): spend for spend in document["spends"]}
        listed = sum((Fraction(spend["rho"]) for spend in document["spends"]), Fraction(0))
        cap, spent, remaining = (
            Fraction(document[part]) for part in ("cap_rho", "spent_rho", "remaining_rho")
        )
        terms = (document["population"], document["relation"], document["unit"])
        mine = [(spends.get(part.provenance.request_id), part) for part in releases.all]
        charges = [
            None
            if spend is None
            else (spend.get("rho"), spend.get("debited"), spend.get("release_sha256"))
            for spend, _ in mine
        ]
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise BundleError("ledger.json is damaged") from error
    if None in charges:
        raise BundleError("ledger.json does not list the charge of this release")
    if len(spends) != len(document["spends"]) or spent != listed or remaining != cap - spent:
        raise BundleError("ledger.json does not add up")
    if cap < spent:
        raise BundleError("ledger.json says that more was spent than its cap allows")
    if terms != (where.population, where.relation.value, where.unit.words):
        raise BundleError("ledger.json names another population, relation or unit")
    expected = [
        (str(part.provenance.rho), str(part.provenance.debited), digest(part.to_bytes()))
        for part in releases.all
    ]
    if charges != expected:
        raise BundleError("ledger.json names another charge or release than the statement")
    _check_form(document, simulated=releases.simulated)


def _check_form(document: Mapping[str, Any], *, simulated: bool) -> None:
    """Nothing is in a ledger document but what one says; bundles older than the chain lack it."""
    head = document.get("chain_head")
    headed = simulated if head is None else _HASH.fullmatch(str(head)) is not None
    fits = headed or "chain_head" not in document
    fits &= {"chain_head", *document} - {"warning"} == _ACCOUNT
    for spend in document["spends"]:
        fits &= set(spend) == _SPEND and spend["state"] in set(SpendState)
    if not fits:
        raise BundleError("ledger.json holds something that no ledger says")


def check_certificate(found: Mapping[str, Any], release: TreeRelease, fitted: Fit) -> None:
    """The certificate is what the edges and the fitted model give."""
    made = certificate(release, fitted).to_dict()
    for part in made:
        if part not in ("model", "words") and found.get(part) != made[part]:
            raise BundleError("certificate.json does not follow from the edges of the release")
    figures = found.get("model")
    if not isinstance(figures, list) or len(figures) != len(made["model"]):
        raise BundleError("certificate.json does not follow from the fitted model")
    for figure, expected in zip(figures, made["model"], strict=True):
        if not isinstance(figure, dict) or not _alike(figure, expected):
            raise BundleError("certificate.json does not follow from the fitted model")
    if not isinstance(found.get("words"), list) or not _same_words(found["words"], made["words"]):
        raise BundleError("certificate.json says something else than it proves")


def _alike(figure: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    bits, made = figure.get("cmi_bits"), expected["cmi_bits"]
    close = (
        isinstance(bits, float | int) and math.isclose(bits, made, abs_tol=TOLERANCE)
        if made is not None
        else bits is None
    )
    rest = {key: value for key, value in expected.items() if key != "cmi_bits"}
    return close and rest == {key: value for key, value in figure.items() if key != "cmi_bits"}


def _same_words(found: list[Any], made: list[str]) -> bool:
    """Equal sentences, but for the digits of the model's figures."""

    def plain(sentence: object) -> str:
        words, _, figure = str(sentence).partition("of the fitted model ")
        return words if figure.endswith("bits.") else str(sentence)

    return [plain(sentence) for sentence in found] == [plain(sentence) for sentence in made]


def check_row_count(files: Mapping[str, bytes], plan: Plan, release: TreeRelease) -> None:
    """Refuse to make rows again of which the bundle's table cannot hold as many.

    A line is at least its commas and its line end; without this a small file could ask for any
    number of rows.
    """
    wanted = plan.synthetic.rows
    rows = max(round(release.total), 1) if wanted is None else wanted
    line = len(release.schema.names) + 1
    if len(files["synthetic.csv"]) < 0.9 * rows * line - line:
        raise BundleError("synthetic.csv has fewer rows than its plan and release ask for")


def check_free(
    files: Mapping[str, bytes],
    plan: Plan,
    releases: Releases,
    free: Free,
    drawn_on: Mapping[str, str],
) -> tuple[str, ...]:
    """What is made again is what the bundle holds; a warning where that cannot be settled here.

    Draws and fits are reproducible on the same versions and the same kind of processor; elsewhere
    the last digits can differ, and with them some rows.
    """
    made = free_files(plan, releases, free)
    changed = [name for name, blob in made.items() if files.get(name) != blob]
    if not changed:
        return ()
    if releases.tree is not None and free.synthetic is not None:
        _check_frame(files["synthetic.csv"], releases.tree, free.synthetic.rows)
    apart = differences(drawn_on)
    if not apart:
        raise BundleError(
            f"{changed[0]} does not follow from the release: something else comes out of it on "
            "the very versions and kind of processor that the manifest names"
        )
    return (
        f"{changed[0]} is not what this machine makes of the release, which may be because of "
        f"what differs from where it was made ({'; '.join(apart)}); its columns, rows and "
        "categories fit the declarations, so compare it with the publisher's hash, or verify it "
        "where the versions are the same",
    )


def _check_frame(blob: bytes, release: TreeRelease, rows: int) -> None:
    import csv

    try:
        table = list(csv.reader(io.StringIO(blob.decode(), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BundleError("synthetic.csv is damaged") from error
    if not table or tuple(table[0]) != release.schema.names or len(table) != rows + 1:
        raise BundleError("synthetic.csv has other columns or another number of rows")
    for index, column in enumerate(release.schema.columns):
        if column.categories and not {row[index] for row in table[1:]} <= {*column.cells, ""}:
            raise BundleError(f"synthetic.csv: {column.name!r} holds undeclared categories")
