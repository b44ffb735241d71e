"""What the noisy tables themselves say about a release; costs nothing."""

from __future__ import annotations

from core.releases import TreeRelease

#: A column with at least this share of its noisy counts outside the declared cells was misread.
SUSPICIOUS = 0.8
#: Counts nearer to zero than this many standard deviations say nothing.
CLEAR = 5.0


def misread_columns(release: TreeRelease) -> tuple[str, ...]:
    """Columns of which nearly every value counts as missing or as outside the declaration.

    Judged by noisy counts only, so it may be told to anybody; only cells of their own are seen
    (a value that a rule moves into a declared cell leaves no trace).
    """
    found = []
    for marginal in release.one_way:
        column = release.schema[marginal.clique[0]]
        outside = float(marginal.values[column.declared_size :].sum())
        whole = float(marginal.values.sum())
        noise = marginal.sigma * marginal.values.size**0.5
        if whole > CLEAR * noise and outside > SUSPICIOUS * whole:
            found.append(column.name)
    return tuple(found)
