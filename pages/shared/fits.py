"""Measured against fitted: one column or one edge of a release, ready to draw."""

from __future__ import annotations

from dataclasses import dataclass

from core.artefacts import compressed_labels
from core.privci.tree_model import TreeModel
from core.releases import TreeRelease
from pages.shared.lanes import Edge


@dataclass(frozen=True)
class Compared:
    """Noisy and fitted counts of one column, on the cells that were kept."""

    cells: tuple[str, ...]
    measured: tuple[float, ...]
    sigma: float
    fitted: tuple[float, ...]


def column(release: TreeRelease, model: TreeModel, name: str) -> Compared:
    """One column's noisy counts (merged cells summed) beside the model's."""
    declared = release.schema[name]
    table = next(item for item in release.one_way if item.clique == (name,))
    members = release.recoding.members(name, declared.size)
    node = model.node[model.columns.index(name)]
    return Compared(
        compressed_labels(release, name),
        tuple(float(sum(table.values[code] for code in codes)) for codes in members),
        table.sigma,
        tuple(float(share) * model.total for share in node),
    )


def edge(
    release: TreeRelease, model: TreeModel, pair: Edge
) -> tuple[list[list[float]], tuple[str, ...], tuple[str, ...]]:
    """The fitted table of an edge in rows, with the labels of both columns."""
    names = tuple(sorted(pair))
    index = model.edge_names.index(names)
    table = model.edge[index] * model.total
    return (
        [[float(value) for value in row] for row in table],
        compressed_labels(release, names[0]),
        compressed_labels(release, names[1]),
    )
