from __future__ import annotations

import json

import networkx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core import demo
from core.private.coding import encode
from core.private.raw import RawTable, ReadingReport
from core.private.zcdp import as_rho
from core.privci.certificate import (
    NOT_COMPUTED,
    TRANSFER,
    SeparationProof,
    certificate,
    components,
    conditional_mutual_information,
    model_figure,
)
from core.privci.reconstruct import Fit, fit
from core.privci.select import release_tree
from core.roles import Constraint, Role, Roles
from core.simulation import simulated_vault
from tests.core.privci.models import brute_joint, random_edges, random_model, release_of


def brute_cmi(model, constraint):
    """Entropies of the full joint: H(O,A) + H(S,A) - H(O,S,A) - H(A)."""
    joint = brute_joint(model)

    def entropy(names):
        rest = tuple(i for i, name in enumerate(model.columns) if name not in names)
        table = joint.sum(axis=rest)
        table = table[table > 0]
        return -float((table * np.log2(table)).sum())

    s, o, a = constraint.protected, constraint.outcome, constraint.admissible
    return entropy(o | a) + entropy(s | a) - entropy(o | s | a) - entropy(a)


def random_rule(generator, names):
    marks = generator.choice(["S", "O", "A", "I"], len(names), p=[0.3, 0.3, 0.2, 0.2])
    groups = ({n for n, m in zip(names, marks, strict=True) if m == mark} for mark in "SOA")
    return Constraint(*(frozenset(group) for group in groups))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_proofs_and_figures_equal_brute_force(seed):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(2, 7))
    sizes = [int(size) for size in generator.integers(1, 4, count)]
    model = random_model(generator, sizes, random_edges(generator, count, 0.9))
    rule = random_rule(generator, model.columns)
    assume(rule.is_active)
    proof = SeparationProof(rule, components(model.columns, model.edge_names, rule))
    graph = networkx.Graph(model.edge_names)
    graph.add_nodes_from(model.columns)
    graph.remove_nodes_from(rule.admissible)
    parts = list(networkx.connected_components(graph))
    assert sorted(map(sorted, parts)) == sorted(list(c.columns) for c in proof.components)
    assert proof.holds == (not any(p & rule.protected and p & rule.outcome for p in parts))
    figure = model_figure(model, proof)
    assert figure.bits == pytest.approx(brute_cmi(model, rule), abs=1e-9)
    if proof.holds:
        assert figure.bits < 1e-9


def chain_release(roles, structure="privci", **more):
    one_way = {"a": [60, 40], "o": [50, 50], "s": [30, 70], "x": [20, 80]}
    edges = (("a", "s"), ("a", "o"), ("o", "x"))
    tables = {
        ("a", "s"): [[25, 35], [5, 35]],
        ("a", "o"): [[40, 20], [10, 30]],
        ("o", "x"): [[15, 35], [5, 45]],
    }
    return release_of(one_way, edges, tables, roles=roles, structure=structure, **more)


def test_a_certificate_says_what_it_proves():
    roles = Roles({"s": Role.PROTECTED, "o": Role.OUTCOME, "a": Role.ADMISSIBLE})
    release = chain_release(roles)
    proof = certificate(release, fit(release, engine="exact"))
    assert proof.holds
    assert [c.columns for c in proof.separation[0].components] == [("o", "x"), ("s",)]
    assert proof.model[0].bits < 1e-9
    assert "proved" in proof.words[0]
    assert "independent of 's' given 'a'" in proof.words[0]
    assert proof.words[-1] == TRANSFER
    plain = json.loads(json.dumps(proof.to_dict(), allow_nan=False))
    assert plain["separation"][0]["holds"] is True
    assert plain["separation"] == certificate(release).to_dict()["separation"]
    assert certificate(release).model == ()


def test_a_violated_rule_is_named_and_measured():
    roles = Roles({"s": Role.PROTECTED, "o": Role.OUTCOME})
    release = chain_release(roles, "mst")
    fitted = fit(release, engine="exact")
    proof = certificate(release, fitted)
    assert not proof.holds
    assert "does not hold" in proof.words[0]
    assert proof.model[0].bits > 1e-3
    (rule,) = roles.constraints
    assert proof.model[0].bits == pytest.approx(brute_cmi(fitted.model, rule), abs=1e-12)


def test_every_constraint_has_its_own_proof():
    further = (Constraint({"x"}, {"s"}, frozenset(), "second"),)
    roles = Roles({"s": Role.PROTECTED, "o": Role.OUTCOME, "a": Role.ADMISSIBLE}, further=further)
    proof = certificate(chain_release(roles))
    assert [p.holds for p in proof.separation] == [True, False]
    assert not proof.holds


def test_no_rule_proves_nothing():
    proof = certificate(chain_release(Roles()))
    assert proof.separation == ()
    assert "nothing about fairness is proved" in proof.words[0]


def test_proxies_count_as_protected():
    roles = Roles({"s": Role.PROTECTED, "o": Role.OUTCOME, "a": Role.ADMISSIBLE}, proxies={"x"})
    assert not certificate(chain_release(roles)).holds


def test_too_wide_tables_are_said_not_to_be_computed():
    generator = np.random.default_rng(0)
    # s0 - a0 - o - a1 - s1 ...: the hub makes every figure as wide as all columns around it
    model = random_model(generator, [8] * 9, [(0, i) for i in range(1, 9)])
    names = model.columns
    for outcome, holds in (({names[1]}, True), ({names[0]}, False)):
        hub = frozenset({names[0]}) if holds else frozenset()
        rule = Constraint(frozenset(names[2:]), frozenset(outcome), hub)
        proof = SeparationProof(rule, components(names, model.edge_names, rule))
        figure = model_figure(model, proof, cap=10_000)
        assert proof.holds is holds
        assert figure.bits is None
        assert (figure.reason == NOT_COMPUTED) is holds


def test_far_admissible_columns_do_not_widen_the_table():
    generator = np.random.default_rng(0)
    model = random_model(generator, [6] * 12, [(i, i + 1) for i in range(11)])
    names = model.columns
    rule = Constraint(frozenset({names[0]}), frozenset({names[2]}), frozenset(names[3:]))
    proof = SeparationProof(rule, components(names, model.edge_names, rule))
    figure = model_figure(model, proof, cap=6**4)
    direct = model.project((names[2], names[0], names[3]))
    assert figure.bits == pytest.approx(conditional_mutual_information(direct), abs=1e-12)
    assert figure.bits > 1e-3


def test_figures_never_go_below_zero():
    uniform = np.full((3, 3, 3), 1 / 27)
    assert conditional_mutual_information(uniform) == 0
    assert isinstance(fit(release_of({"a": [1, 2]})), Fit)


# -- releases of the demo table --------------------------------------------------------------


@pytest.fixture(scope="module")
def demo_table():
    raw = RawTable(demo.table("hiring", 4_000, 7), "demo", ReadingReport("memory"))
    return encode(raw, demo.schema("hiring"))


def demo_release(table, roles, structure, *, rho, seed, names=None):
    schema = table.schema if names is None else table.schema.select(names)
    grant = simulated_vault(table, seed=seed).grant(as_rho(rho), "tree", "request")
    ignored = {name: Role.IGNORE for name in table.schema.names if name not in schema}
    roles = Roles({**roles.by_column, **ignored}, roles.proxies, roles.further)
    return release_tree(grant, table.schema, roles, structure=structure)


@pytest.mark.parametrize("structure", ["privci", "privci-exact", "prefair"])
@pytest.mark.parametrize("seed", range(70))
def test_constrained_releases_of_the_demo_are_separated(demo_table, structure, seed):
    generator = np.random.default_rng(seed)
    names = demo_table.schema.names
    marks = generator.choice(["S", "O", "A", "I"], len(names), p=[0.2, 0.15, 0.3, 0.35])
    roles = Roles(dict(zip(names, marks, strict=True)))
    rho = float(np.round(10 ** generator.uniform(-3, 1), 4))
    release = demo_release(demo_table, roles, structure, rho=rho, seed=seed)
    proof = certificate(release, fit(release))
    assert proof.holds
    for figure in proof.model:
        assert figure.reason == NOT_COMPUTED if figure.bits is None else figure.bits < 1e-9


def test_the_unconstrained_tree_of_the_demo_carries_the_bias(demo_table):
    roles = demo.roles("hiring")
    (rule, *_) = roles.constraints
    for seed in range(3):
        release = demo_release(
            demo_table, roles, "mst", rho=1, seed=seed, names=sorted(rule.columns)
        )
        proof = certificate(release, fit(release))
        assert not proof.holds
        assert proof.model[0].bits > 1e-4
