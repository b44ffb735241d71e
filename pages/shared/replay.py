"""The released tree, step by step: slider, play button, picture, sentence, table, files."""

from __future__ import annotations

import streamlit as st

from core.bundle import file_name
from core.releases import SelectionStep, TreeRelease
from core.roles import Roles
from pages.shared import network, pictures
from pages.shared.explorer import standalone
from pages.shared.jobs import Job, JobState
from pages.shared.player import player
from pages.shared.project import Project
from pages.shared.strength import strengths
from pages.shared.widgets import download

#: About how many pictures the growing tree is shown in.
LOOKS_AT_MOST = 16


def live(job: Job, project: Project, names: tuple[str, ...], roles: Roles) -> bool:
    """Edges as they were drawn, a few at a time; false once all of them are shown.

    The job may be faster than eyes: the picture then follows at its own pace.
    """
    chosen = [detail for _, detail in job.events if isinstance(detail, SelectionStep)]
    steps = chosen[: project.drawn]
    constraint = roles.constraints[0] if roles.constraints else None
    pictures.show(
        names, roles, [step.chosen for step in steps], key="live_tree", constraint=constraint
    )
    st.markdown(
        f"Step {len(steps)}: {network.sentence(steps[-1])}"
        if steps
        else "Every column stands alone; the first edge is being chosen."
    )
    project.drawn = min(project.drawn + max(1, len(names) // LOOKS_AT_MOST), len(chosen))
    return len(steps) < len(chosen) and job.state is not JobState.FAILED


def kept(release: TreeRelease) -> str:
    """What a release that was cancelled on the way holds, in words."""
    edges, pairs = len(release.steps), len(release.two_way)
    return (
        f"the noisy tables of {len(release.one_way)} columns, {edges} "
        f"{'edge' if edges == 1 else 'edges'} of the tree, and the noisy tables of {pairs} "
        f"{'pair' if pairs == 1 else 'pairs'}"
    )


def replay(release: TreeRelease, key: str) -> None:
    """Slider and play button over the log of the selection."""
    player(key, len(release.steps), "Step of the tree", lambda step: _step(release, key, step))


def _step(release: TreeRelease, key: str, step: int) -> None:
    names, roles = release.schema.names, release.roles
    constraint = pictures.choose_rule(roles, f"{key}_rule")
    if step:
        st.markdown(
            f"Step {step} of {len(release.steps)}: {network.sentence(release.steps[step - 1])}"
        )
    else:
        st.markdown(
            f"Before the first step: {len(release.forbidden)} pairs are forbidden by the rule."
        )
    shown = release.forbidden if step == 0 else ()
    pictures.show(
        names,
        roles,
        release.edges[:step],
        key=f"{key}_picture",
        settled=release.edges,
        strengths=strengths(release),
        forbidden=shown,
        constraint=constraint,
        found=pictures.find_column(names, f"{key}_find"),
    )


def tables(release: TreeRelease, title: str) -> None:
    """Edges and reasons as tables, and the picture as a file of its own."""
    edges, forbidden = st.tabs(["Edges", "Forbidden pairs"])
    with edges:
        pictures.edge_table(release, strengths(release))
    with forbidden:
        late = [pair for step in release.steps for pair in step.forbidden]
        pictures.forbidden_table([*release.forbidden, *late], height=420)
    download(
        "Download the picture (HTML, works offline)",
        lambda: standalone(release, title),
        file_name("tree.html", release.provenance.simulated),
        "download_picture",
        help="One file with its own step control; opens in any browser without a network.",
    )
    st.caption("Line widths follow the noisy pair tables of the release.")
