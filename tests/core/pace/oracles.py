"""Independent answers to what the completion computes, and noisy matrices to complete."""

from __future__ import annotations

import numpy as np

from core.pace.measurements import Measurements


def noisy_graph(d, edges, *, noise, seed, precision=None, rows=None):
    """Squares and ``edges`` random products of a random unit-box second moment matrix."""
    generator = np.random.default_rng(seed)
    mixing = np.eye(d) + generator.normal(size=(d, d)) * 0.5 / np.sqrt(d)
    X = generator.normal(size=(rows or 4 * d, d)) @ mixing
    X /= np.abs(X).max(axis=0)
    S = X.T @ X / len(X)
    scale = 1 / np.sqrt(S.diagonal())
    S = S * np.outer(scale, scale) / 2
    products = np.column_stack(np.triu_indices(d, 1))
    chosen = products[generator.permutation(len(products))[:edges]]
    squares = np.column_stack([np.arange(d), np.arange(d)])
    pairs = np.concatenate([squares, chosen])
    values = S[pairs[:, 0], pairs[:, 1]] + noise * generator.normal(size=len(pairs))
    weight = 1 / noise**2 if precision is None else precision
    return Measurements(d, pairs, values, np.full(len(pairs), weight)), S


def barrier_by_cvxpy(measurements, mu):
    """Minimise 1/2 sum lambda (W - y)^2 - mu log|W| by Clarabel; mu 0 drops the entropy."""
    import cvxpy

    W = cvxpy.Variable((measurements.size, measurements.size), symmetric=True)
    rows, columns = measurements.pairs.T
    residual = cvxpy.multiply(
        np.sqrt(measurements.precisions / 2), W[rows, columns] - measurements.values
    )
    if mu == 0:
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(residual)), [W >> 0])
    else:
        cost = cvxpy.sum_squares(residual) / mu - cvxpy.log_det(W)
        problem = cvxpy.Problem(cvxpy.Minimize(cost))
    problem.solve(
        solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9, max_iter=500
    )
    return np.asarray(W.value)


def forest_completion(d, edges, S):
    """Correlations multiply along the paths of a forest and are 0 between its trees."""
    scale = np.sqrt(np.diag(S))
    W = np.diag(np.diag(S)).astype(float)
    neighbours = {node: [] for node in range(d)}
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    for root in range(d):
        reached = {root: 1.0}
        waiting = [root]
        while waiting:
            node = waiting.pop()
            for other in neighbours[node]:
                if other not in reached:
                    step = S[node, other] / (scale[node] * scale[other])
                    reached[other] = reached[node] * step
                    waiting.append(other)
        for other, correlation in reached.items():
            W[root, other] = correlation * scale[root] * scale[other]
    return W


def chordal_precision(d, elimination, S):
    """K = sum over v of [W_{v,parents}^-1] - [W_parents^-1] along a perfect elimination order.

    ``elimination`` lists (v, parents) such that the parents of each v form a clique of measured
    entries.
    """
    K = np.zeros((d, d))
    for node, parents in elimination:
        clique = np.array([node, *parents])
        K[np.ix_(clique, clique)] += np.linalg.inv(S[np.ix_(clique, clique)])
        if parents:
            separator = np.array(parents)
            K[np.ix_(separator, separator)] -= np.linalg.inv(S[np.ix_(separator, separator)])
    return K


def kkt_residual(completion):
    """Largest violation of W_i = y_i + 2 c_i tau_i K_i over the measured entries."""
    rows, columns = completion.measurements.pairs.T
    factor = np.where(rows == columns, 1.0, 2.0)
    fitted = (
        completion.measurements.values
        + factor * completion.ridge * (completion.precision[rows, columns])
    )
    return np.abs(completion.covariance[rows, columns] - fitted).max()
