"""What the guides show must be true: plans parse, numbers are computed, links lead somewhere."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from core.codebook import read_codebook
from core.plan import parse_plan
from core.private.zcdp import as_rho, epsilon, guessing_bound
from core.roles import Role
from core.schema import Column, Kind
from core.statement import guessing_sentence

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def guide() -> str:
    return (ROOT / "docs" / "guide-steward.md").read_text("utf-8")


def test_the_plan_in_the_guide_is_a_plan():
    (text,) = re.findall(r"```toml\n(.*?)```", guide(), re.DOTALL)
    plan = parse_plan(text)
    (rule,) = plan.roles.constraints
    assert rule.protected == {"gender", "career_gap_months"}
    assert plan.roles.role("applicant_id") is Role.IGNORE
    assert parse_plan(plan.to_toml()) == plan


def test_the_guide_states_the_computed_numbers():
    rows = re.findall(
        r"^\| ([\d.]+) \| ([\d.]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", guide(), re.M
    )
    assert len(rows) >= 6
    for rho, shown, *bounds in rows:
        exact = as_rho(rho)
        assert float(shown) == pytest.approx(epsilon(exact, 1e-9), abs=0.006)
        for baseline, bound in zip((0.001, 0.01, 0.1), bounds, strict=True):
            percent = float(bound.removesuffix(" %"))
            places = len(bound.removesuffix(" %").partition(".")[2])
            tolerance = 0.51 * 10**-places
            assert percent == pytest.approx(100 * guessing_bound(exact, baseline), abs=tolerance)


def test_the_guide_quotes_the_guessing_sentence():
    quoted = " ".join(re.findall(r"^> (.*)$", guide(), re.M))
    assert quoted == guessing_sentence(as_rho("0.1"))


def test_the_codebook_page_shows_every_setting_and_kind():
    page = (ROOT / "docs" / "codebook.md").read_text("utf-8")
    (shown,) = re.findall(r"```\n(name,.*?)```", page, re.DOTALL)
    example = ROOT / "docs" / "codebook-example.csv"
    assert example.read_text("utf-8") == shown
    schema = read_codebook(example)
    assert {column.kind for column in schema.columns} == set(Kind)
    (plain,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert read_codebook(plain.encode()).names == ("gender", "age")
    table = "\n".join(re.findall(r"^\| `.*$", page, re.M))
    assert {field.name for field in fields(Column)} <= set(re.findall(r"`(\w+)`", table))


def test_the_guide_lists_every_file_of_a_bundle():
    from core.artefacts import DESCRIPTIONS, about
    from core.bundle import MANIFEST

    listed = set(re.findall(r"`([\w/-]+\.(?:csv|json|md|toml|npz|parquet))`", guide()))
    assert {about(name) for name in listed - {MANIFEST}} == set(DESCRIPTIONS.values())


def test_the_plans_on_the_method_pages_fit_a_table():
    terms, rest = (ROOT / "docs" / "guide-steward.md").read_text("utf-8").split("[tree]")[:2]
    del rest
    population = terms[terms.rindex("[population]") :]
    columns = "".join(
        f'[[columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = 200000\n'
        for name in ("pay", "age", "income", "rent")
    )
    region = '[[columns]]\nname="region"\nkind="categorical"\ncategories=["north","south"]\n'
    for name in ("posterior", "covariance"):
        page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
        (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
        plan = parse_plan(f"{population}\n{text}\n{columns}{region}")
        assert plan.tree is None
        assert parse_plan(plan.to_toml()) == plan


def test_the_notebook_example_of_the_posterior_page_runs():
    page = (ROOT / "docs" / "posterior.md").read_text("utf-8")
    (text,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    found: dict[str, object] = {}
    exec(text, found)
    assert found["world"].posteriors[0].summary[0].eti_low > 18


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_every_decision_is_listed_and_complete():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text("utf-8")
    pages = sorted(folder.glob("[0-9]*.md"))
    assert [page.name[:4] for page in pages] == [f"{n + 1:04d}" for n in range(len(pages))]
    for page in pages:
        text = page.read_text("utf-8")
        assert f"({page.name})" in index
        assert text.startswith(f"# {page.name[:4]} · ")
        for part in ("Context", "Decision", "Consequences", "Evidence"):
            assert f"\n## {part}\n" in text, f"{page.name}: {part}"
