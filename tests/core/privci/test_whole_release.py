"""The promises of a whole release, on the demo tables, with OpenDP's own noise."""

from fractions import Fraction
from functools import cache

import networkx as nx
import numpy as np
import pytest

from core import demo
from core.private.coding import encode
from core.private.ledger import Charge, Ledger, Population
from core.private.noise import OpenDPNoise
from core.private.reading import read_table
from core.private.source import InMemorySource
from core.private.vault import Vault
from core.privci.certificate import certificate
from core.privci.reconstruct import fit
from core.privci.sample import synthesize
from core.privci.select import release_tree
from core.releases import Relation
from core.roles import Constraint, Role, Roles
from core.schema import Schema
from core.simulation import simulated_vault

STRUCTURES = ("privci", "privci-exact", "prefair")
ROLES = (Role.PROTECTED, Role.OUTCOME, Role.ADMISSIBLE, Role.INADMISSIBLE, Role.IGNORE)
ROLE_SETS = 200


@cache
def coded(name, columns=None):
    schema = demo.schema(name)
    kept = schema if columns is None else schema.select(columns)
    return encode(read_table(demo.csv_bytes(name)), kept)


def granted(table, rho, relation=Relation.ADD_REMOVE):
    """A grant with real noise, from a throw-away ledger."""
    ledger = Ledger("sqlite://")
    population = ledger.create_population(
        Population("test", relation, table.unit, Fraction(100), simulated=True)
    )
    vault = Vault(InMemorySource(table), population, ledger, noise=OpenDPNoise())
    (grant,) = vault.grants([Charge("one", "tree", rho)])
    return grant


def random_roles(generator, names):
    """Roles, proxies and sometimes a second constraint, drawn without looking at the columns."""
    by_column = {name: ROLES[int(generator.integers(len(ROLES)))] for name in names}
    if all(role is Role.IGNORE for role in by_column.values()):
        by_column[names[0]] = Role.INADMISSIBLE
    kept = [name for name in names if by_column[name] is not Role.IGNORE]
    inadmissible = [name for name in kept if by_column[name] is Role.INADMISSIBLE]
    proxies = [name for name in inadmissible if generator.random() < 0.3]
    further = []
    if generator.random() < 0.3 and len(kept) >= 3:
        first, second, third = (str(name) for name in generator.permutation(kept)[:3])
        further = [Constraint({first}, {second}, {third}, "further")]
    return Roles(by_column, frozenset(proxies), tuple(further))


def separated(release, constraint):
    """Independent oracle: networkx reachability outside the admissible columns."""
    graph = nx.Graph(release.edges)
    graph.add_nodes_from(release.schema.names)
    graph.remove_nodes_from(constraint.admissible)
    for one in constraint.protected & set(graph):
        for other in constraint.outcome & set(graph):
            if nx.has_path(graph, one, other):
                return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_promise_holds_for_random_roles_budgets_and_structures(part):
    generator = np.random.default_rng(part)
    for index in range(ROLE_SETS // 4):
        name = demo.names()[index % 3]
        table = coded(name)
        roles = random_roles(generator, list(table.schema.names))
        rho = Fraction(str(round(float(10 ** generator.uniform(-3, 1)), 6)))
        structure = STRUCTURES[int(generator.integers(3))]
        relation = list(Relation)[int(generator.integers(2))]
        grant = granted(table, rho, relation)
        release = release_tree(grant, table.schema, roles, structure=structure)
        case = (name, index, structure, rho, roles)

        assert all(separated(release, rule) for rule in roles.constraints), case
        proofs = certificate(release).separation
        assert all(proof.holds for proof in proofs), case

        forfeited = release.provenance.forfeited
        assert forfeited >= 0
        early = len(release.edges) < len(release.schema.names) - 1
        assert early or forfeited <= rho / 1000, case
        assert release.provenance.debited == rho - forfeited
        spent = sum((m.rho for m in (*release.one_way, *release.two_way)), Fraction(0))
        assert spent <= release.provenance.debited

        rows = int(generator.integers(1, 400))
        frame = synthesize(release, rows=rows, seed=index).frame
        assert list(frame.columns) == list(release.schema.names)
        assert len(frame) == rows
        for column in release.schema.columns:
            assert_in_domain(frame[column.name], column)


def assert_in_domain(values, column):
    present = values[values.notna()]
    if column.kind in ("integer", "real"):
        low, high = column.bounds
        assert present.between(low, high).all()
        if column.kind == "integer":
            assert (present.astype(float) % 1 == 0).all()
    elif column.kind == "date":
        days = [day.toordinal() for day in np.array(present.astype("datetime64[s]")).tolist()]
        assert all(column.bounds[0] <= day <= column.bounds[1] for day in days)
    else:
        assert set(present.astype(str)) <= set(column.cells)
    if column.missing_code is None:
        other = column.other_code
        assert other is not None or values.notna().all()


def small(name, structure, rho, seed):
    """A release of the rule's columns in simulation, small enough to enumerate."""
    table = coded(name, tuple(rule_columns(name)))
    roles = demo.roles(name)
    names = set(table.schema.names)
    by_column = {n: r for n, r in roles.by_column.items() if n in names}
    roles = Roles(by_column, frozenset(roles.proxies & names))
    vault = simulated_vault(table, seed=seed)
    grant = vault.grant(rho, "tree", "one")
    return release_tree(grant, table.schema, roles, structure=structure)


def enumerated_information(model, constraint):
    """I(O; S | A) in bits from the joint of all columns, cell by cell."""
    joint = np.ones(())
    names, axes = list(model.columns), {}
    for axis, size in enumerate(model.sizes):
        joint = np.multiply.outer(joint, np.ones(size))
        axes[names[axis]] = axis
    touched = set()
    for (i, j), table in zip(model.edges, model.edge, strict=True):
        joint = joint * expanded(table, (i, j), model.sizes)
        touched |= {i, j}
    degree = np.zeros(len(names), dtype=int)
    for i, j in model.edges:
        degree[[i, j]] += 1
    for i, shares in enumerate(model.node):
        power = 1 - degree[i]
        with np.errstate(divide="ignore"):
            factor = np.where(shares > 0, np.power(shares, float(power)), 0.0)
        joint = joint * expanded(factor, (i,), model.sizes)
    joint /= joint.sum()
    groups = [
        [axes[name] for name in sorted(part & set(names))]
        for part in (constraint.outcome, constraint.protected, constraint.admissible)
    ]
    return conditional_information(joint, *groups)


def expanded(table, places, sizes):
    shape = [1] * len(sizes)
    order = np.argsort(places)
    table = np.transpose(table, order)
    for place in places:
        shape[place] = sizes[place]
    return table.reshape(shape)


def conditional_information(joint, outcome, protected, admissible):
    def entropy(axes):
        out = tuple(axis for axis in range(joint.ndim) if axis not in axes)
        shares = joint.sum(axis=out).ravel()
        shares = shares[shares > 0]
        return float(-(shares * np.log2(shares)).sum())

    a = set(admissible)
    o, s = set(outcome), set(protected)
    return entropy(o | a) + entropy(s | a) - entropy(o | s | a) - entropy(a)


@pytest.mark.parametrize("name", demo.names())
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_models_own_information_is_zero_by_enumeration(name, structure):
    for seed, rho in enumerate((Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(10))):
        release = small(name, structure, rho, seed)
        fitted = fit(release)
        (rule,) = release.roles.constraints
        assert enumerated_information(fitted.model, rule) < 1e-9
        (figure,) = certificate(release, fitted).model
        assert figure.bits is None or figure.bits < 1e-9


@pytest.mark.parametrize("name", demo.names())
def test_the_unconstrained_tree_breaks_the_rule(name):
    for seed in range(5):
        release = small(name, "mst", Fraction(1), seed)
        fitted = fit(release)
        (rule,) = release.roles.constraints
        bits = enumerated_information(fitted.model, rule)
        assert bits > 1e-4
        (figure,) = certificate(release, fitted).model
        assert figure.bits == pytest.approx(bits, rel=1e-6)
        assert not certificate(release).holds


def rule_columns(name):
    """The demo's S, O, A and proxy columns, in file order."""
    (rule,) = demo.roles(name).constraints
    return [n for n in demo.schema(name).names if n in rule.columns]


def test_the_order_of_columns_changes_nothing():
    table = coded("hiring")
    roles = demo.roles("hiring")
    roles = Roles({n: r for n, r in roles.by_column.items() if n in table.schema}, roles.proxies)
    first = None
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(table.schema.columns))
        schema = Schema(tuple(table.schema.columns[i] for i in order))
        permuted = type(table)(schema, table.codes, table.numbers, table.rows, table.unit)
        grant = simulated_vault(permuted, seed=1).grant(Fraction(1, 2), "tree", "one")
        release = release_tree(grant, schema, roles)
        synthetic = synthesize(release, rows=500, seed=3).frame
        assert list(synthetic.columns) == list(schema.names)
        found = (release.edges, release.total, synthetic[sorted(synthetic.columns)])
        first = found if first is None else first
        assert found[0] == first[0]
        assert found[1] == first[1]
        assert found[2].equals(first[2])
