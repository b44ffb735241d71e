"""What the statement says first, what it leaves to specialists, and what it never says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from core.outcome import Releases
from core.plain_text import plain
from core.promise import exact, guessing_sentence, short
from core.releases import Relation, TreeRelease, Unit
from core.roles import Role, Roles
from core.statement import FLAG_WORDS, quality_flags, statement
from tests.core.test_releases import tree_release

PROXIED = Roles({"b": Role.OUTCOME}, frozenset({"a"}))


def changed(**provenance: object) -> TreeRelease:
    release = tree_release()
    return replace(release, provenance=replace(release.provenance, **provenance))


def test_the_promise_comes_first_and_its_arithmetic_under_a_heading_of_its_own() -> None:
    text = statement(Releases(tree_release()))
    promise, special = text.split("## For specialists")
    assert promise.startswith("# Privacy statement\n\n## What is promised\n\n")
    for words in (
        "people &#60;b&#62;",
        "at most 2 rows each, enforced",
        "How many rows there are is protected as well",
        "guesses right at most 3.51 times in 100",
        "Flag: **data-dependent domain**",
        "`ledger.json`",
    ):
        assert words in promise, words
    for words in ("rho", "epsilon", "delta", "forfeited", "deviation"):
        assert words not in promise, words
    for words in (
        "rho = 0.1",
        "at delta = 1e-09",
        "adding or removing one unit",
        "Debited by the draws: 0.0999; forfeited (charged, never used): 0.0001",
        "two-way tables: 0.0333, 0.0333, 0.0333",
        "noise of standard deviation 1.5 a cell",
    ):
        assert words in special, words


def test_a_flag_points_at_no_place_where_nothing_stands() -> None:
    for words in FLAG_WORDS.values():
        assert "below" not in words
        assert "above" not in words


def test_the_released_columns_are_listed_with_their_cells() -> None:
    text = statement(Releases(tree_release()))
    assert "2 columns, and no others:\n\n- b: 4 cells, outcome\n- a: 5 cells, protected\n" in text


def test_a_proxy_is_called_a_proxy() -> None:
    text = statement(Releases(tree_release(roles=PROXIED)))
    assert "- a: 5 cells, proxy, counted as protected\n" in text
    assert "b independent of a (a proxy), given nothing" in text
    assert "A proxy is not protected for its own sake" in text
    assert "proxy" not in statement(Releases(tree_release()))


def test_a_simulated_statement_promises_nothing() -> None:
    release = changed(simulated=True, flags=("data-dependent domain", "unit unverified"))
    text = statement(Releases(release))
    assert "**SIMULATED, NOT PRIVATE**" in text
    assert "Nothing is protected." in text
    for words in ("promised", "guess", "rho", "epsilon", "privacy, ", "ledger", "Guarantee"):
        assert words not in text, words
    assert "Flag: **data-dependent domain**" in text
    assert "unit unverified" not in text
    assert "SIMULATED" not in statement(Releases(tree_release()))


@pytest.mark.parametrize(("rho", "flagged"), [(Fraction(1), False), (Fraction(500), True)])
def test_a_price_that_protects_nobody_is_flagged(rho: Fraction, flagged: bool) -> None:
    release = changed(rho=rho, debited=rho)
    assert ("no meaningful protection" in quality_flags(Releases(release))) == flagged
    text = statement(Releases(release))
    assert ("- Flag: **no meaningful protection**. The price is so high" in text) == flagged
    simulated = changed(rho=rho, debited=rho, simulated=True)
    assert "no meaningful protection" not in quality_flags(Releases(simulated))


def test_what_is_replaced_is_compared_with_another_row() -> None:
    text = statement(Releases(changed(relation=Relation.REPLACE_ONE, unit=Unit())))
    assert "made with another row in place of that person's" in text
    assert "How many rows there are is public" in text


def test_partial_and_unenforced_releases_say_so() -> None:
    assert "Partial release" in statement(Releases(tree_release(partial=True)))
    assert "not enforced" in statement(Releases(tree_release(structure="mst")))
    assert "No rule was declared" in statement(Releases(tree_release(roles=Roles())))


def test_a_statement_is_a_function_of_the_bytes_of_a_release() -> None:
    release = tree_release(roles=PROXIED)
    assert statement(Releases(TreeRelease.from_bytes(release.to_bytes()))) == statement(
        Releases(release)
    )


def test_numbers_and_names_in_statements() -> None:
    assert exact(Fraction(3, 10)) == "0.3"
    assert exact(Fraction(0)) == "0"
    assert exact(Fraction(0.1)) == "about 0.1"
    assert short(Fraction(1, 30)) == "0.0333"
    assert "1 time in 100" in guessing_sentence(Fraction(1))
    assert plain("a\nb [x](y) <script>") == "a b \\[x\\](y) &#60;script&#62;"
    assert plain("a\u202eb\x07\u200b") == "a(U+202E)b(U+0007)(U+200B)"
    assert plain("می\u200cخواهم") == "می\u200cخواهم"
