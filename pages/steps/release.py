"""Release: what is in the bundle, the sign-off, and the download; computes nothing."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import streamlit as st

from core.artefacts import about
from core.bundle import file_name
from pages.shared import actions, guards, signing, waiting, widgets
from pages.shared import project as state
from pages.shared.held import held
from pages.shared.network import plain

project = state.current()
widgets.head(
    "Release",
    "Everything that may leave the house, in one bundle: what each file is, who signs for it, and "
    "what was promised.",
    project,
)
guards.require(project, "release")
holding = held(project)
assert holding is not None
if holding.plan.tree is not None and not project.fitted and not actions.derived(project, holding):
    with st.container(border=True):
        st.markdown(":material/lock: **There are no synthetic rows yet.**")
        st.page_link(
            guards.PAGES["synthetic"],
            label="Fit and sample on Synthetic (free)",
            icon=":material/arrow_forward:",
        )
    st.stop()
made = waiting.derived(project, holding)
for run in holding.runs:
    widgets.stale_badge(project, run)
for reason in holding.left_out:
    st.caption(f"Not in this bundle: {plain(reason)}.")
releases = made.releases
simulated = releases.simulated
digest = hashlib.sha256(made.bundle).hexdigest()
if releases.partial:
    st.warning(
        "This release was cancelled on the way: it holds what had been measured until then. The "
        "whole charge stays spent, and the statement says so.",
        title="Partial release",
    )
if simulated:
    st.error("Seeded noise: this gives no privacy and must not be published.", title="Simulated")
for flag in releases.flags:
    st.warning(f"Flag: {flag}. The statement explains it.", icon=":material/flag:")

st.header("In the bundle", anchor=False)
names = sorted(made.files)
listing = {
    "file": [plain(file_name(name, simulated)) for name in names],
    "what it is, and whether it may be published": [about(name) for name in names],
}
if not widgets.phone():
    sizes = [max(len(made.files[name]) / 1000, 0.1) for name in names]
    listing["size"] = [f"{size:,.1f} kB" for size in sizes]
st.table(listing, hide_index=True, alt="Files of the bundle")
st.caption(
    "Every file follows from the noisy releases; none holds a row or a true count. The statement "
    "belongs with the data: publish them together."
)

signed = project.sign_off.get(digest)
left, right = st.columns(2, gap="large")
with left:
    st.header("Sign", anchor=False)

    def sign() -> None:
        """Put name, purpose and date under the bundle's hash."""
        project.keep()  # takes over what other tabs signed
        if digest in project.sign_off:
            return  # a second click, or another tab was faster
        name, purpose = (st.session_state[key].strip() for key in ("signer", "purpose"))
        if not name or not purpose:
            project.problem = "type your name and what the release is for"
            return
        today = datetime.now(UTC).date().isoformat()
        entry = {"name": name, "purpose": purpose, "date": today}
        signing.log_signature(holding, digest, entry)
        project.change(sign_off={**project.sign_off, digest: entry})

    if signed:
        st.success(
            f"Signed by {plain(signed['name'])} on {signed['date']}, for: "
            f"{plain(signed['purpose'])}.",
            icon=":material/signature:",
        )
    else:
        with st.form("sign_form"):
            st.text_input("Name of the person who signs", key="signer", max_chars=120)
            st.text_area("Purpose of the release", key="purpose", max_chars=1000, height=100)
            st.form_submit_button(widgets.main("Sign", "signature"), type="primary", on_click=sign)
        if project.problem:
            st.error(plain(project.problem), title="Not signed")
            project.problem = ""
    st.caption(f"SHA-256 of the bundle: `{digest}`")
    unsigned = {"disabled": signed is None, "help": None if signed else "Sign first."}
    label = "Download bundle"
    with st.container(horizontal=True):
        widgets.download(
            widgets.main(label, "download") if signed else f":material/download: {label}",
            lambda: made.bundle,
            file_name("bundle.zip", simulated),
            "bundle",
            icon=None,
            type="primary" if signed else "secondary",
            **unsigned,
        )
        widgets.download(
            "Download sign-off",
            lambda: signing.sign_off(signed or {}, made, digest),
            file_name("sign-off.md", simulated),
            "sign_off",
            **unsigned,
        )
    with st.expander("If a release has to be withdrawn"):
        st.markdown(
            "Take the files down and tell those who have them, by the hash above. What is known "
            "once stays known: **a withdrawal gives no budget back**, and the ledger keeps the "
            "charge. A corrected release is a new release with a new charge."
        )
with right:
    st.header("Privacy statement", anchor=False)
    with st.container(border=True, height=520, key="statement"):
        st.markdown(widgets.demoted(made.files["statement.md"].decode()))
guards.next_step("ledger", "See the ledger")
