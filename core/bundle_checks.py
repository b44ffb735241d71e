"""Whether the documents of a bundle agree with the release inside it."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from core.artefacts import synthetic_files
from core.errors import BundleError
from core.machine import differences
from core.plan import Plan
from core.privci.certificate import certificate
from core.privci.reconstruct import Fit
from core.privci.sample import synthesize
from core.releases import TreeRelease

#: Figures of a fitted model may differ this much between machines, in bits.
TOLERANCE = 1e-6


def check_plan(plan: Plan, text: bytes, release: TreeRelease) -> None:
    """The plan's terms, price, roles and declarations are those of the release, and nothing more.

    A comment, or a declaration of a column that was not released, is no part of what was checked.
    """
    provenance = release.provenance
    terms = plan.population
    if plan.released.to_dict() != release.schema.to_dict() or plan.roles != release.roles:
        raise BundleError("plan.toml declares other columns or roles than the release")
    if (plan.tree.rho, plan.tree.structure, plan.tree.split) != (
        provenance.rho,
        release.structure,
        release.split,
    ):
        raise BundleError("plan.toml names another price, split or structure than the release")
    if (terms.name, terms.relation, terms.unit) != (
        provenance.population,
        provenance.relation,
        provenance.unit,
    ):
        raise BundleError("plan.toml names another population, relation or unit than the release")
    if plan.public().to_toml().encode() != text:
        raise BundleError(
            "plan.toml holds more than the public plan, or writes it in another form: comments, "
            "settings at their defaults, or declarations of columns that were not released"
        )


def check_ledger(document: Mapping[str, Any], release: TreeRelease, sha256: str) -> None:
    """The account adds up, stays within its cap, and lists this release's charge."""
    provenance = release.provenance
    try:
        spends = {str(spend["request_id"]): spend for spend in document["spends"]}
        listed = sum((Fraction(spend["rho"]) for spend in document["spends"]), Fraction(0))
        cap, spent, remaining = (
            Fraction(document[part]) for part in ("cap_rho", "spent_rho", "remaining_rho")
        )
        mine = spends.get(provenance.request_id)
        terms = (document["population"], document["relation"], document["unit"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise BundleError("ledger.json is damaged") from error
    if mine is None:
        raise BundleError("ledger.json does not list the charge of this release")
    if len(spends) != len(document["spends"]) or spent != listed or remaining != cap - spent:
        raise BundleError("ledger.json does not add up")
    if cap < spent:
        raise BundleError("ledger.json says that more was spent than its cap allows")
    if terms != (provenance.population, provenance.relation.value, provenance.unit.words):
        raise BundleError("ledger.json names another population, relation or unit")
    expected = (str(provenance.rho), str(provenance.debited), sha256)
    if (mine.get("rho"), mine.get("debited"), mine.get("release_sha256")) != expected:
        raise BundleError("ledger.json names another charge or release than the statement")


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


def check_synthetic(
    files: Mapping[str, bytes],
    plan: Plan,
    release: TreeRelease,
    fitted: Fit,
    drawn_on: Mapping[str, str],
) -> tuple[str, ...]:
    """Rows drawn again are the rows in the bundle; a warning where that cannot be settled here.

    Sampling is reproducible on the same versions and the same kind of processor; elsewhere the
    last digits of a fit can differ, and with them some rows.
    """
    settings = plan.synthetic
    made = synthesize(release, fitted, rows=settings.rows, seed=settings.seed)
    changed = [
        name for name, blob in synthetic_files(plan, made).items() if files.get(name) != blob
    ]
    if not changed:
        return ()
    _check_frame(files["synthetic.csv"], release, made.rows)
    apart = differences(drawn_on)
    if not apart:
        raise BundleError(
            f"{changed[0]} does not follow from the release: other rows come out of it on the very "
            "versions and kind of processor that the manifest names"
        )
    return (
        f"{changed[0]} is not what this machine draws from the release, which may be because of "
        f"what differs from where it was drawn ({'; '.join(apart)}); its columns, rows and "
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
