"""Who is here: the mode of the house, the login, and what a person may do to a cap.

Local mode (default): one owner, this machine, and every cap is theirs.  Shared mode
(``JUSTITIA_MODE=shared``): the owner is who Streamlit's OIDC login says, without a login there is
demo data only, and caps are raised by the keepers whom ``JUSTITIA_CAP_KEEPERS`` names.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import streamlit as st

from core.errors import BudgetError, PlanError
from core.private.zcdp import as_rho
from core.release_log import account

LOCAL = "local"
GUEST = "guest"
#: Environment variables: who may raise caps, and the largest cap that others may set.
KEEPERS, LARGEST = "JUSTITIA_CAP_KEEPERS", "JUSTITIA_LARGEST_CAP"
_MAXIMUM_NAME = 200


@dataclass(frozen=True)
class Person:
    """Somebody who logged in.

    Attributes
    ----------
    identity
        Subject and issuer of the login: together they name one person for ever, which an
        address does not.
    email
        The address, if the issuer says that it checked it; otherwise empty.
    name
        How the person is greeted.
    """

    identity: str
    email: str = ""
    name: str = ""

    @property
    def words(self) -> str:
        """Who it is, for a log that is read in years."""
        known = self.email or self.name
        return f"{known} ({self.identity})" if known else self.identity


def person_of(claims: Mapping[str, Any]) -> Person | None:
    """The person whom a login's claims name; None without a login or without a subject.

    A login service may let people choose their address and name themselves: they never decide
    whose data somebody sees.
    """
    subject = str(claims.get("sub") or "").strip()
    if not claims.get("is_logged_in") or not subject:
        return None
    issuer = str(claims.get("iss") or "").strip()
    identity = f"{subject} at {issuer}" if issuer else subject
    if identity in {LOCAL, GUEST}:
        identity = f"login {identity}"
    if len(identity) > _MAXIMUM_NAME or not identity.isprintable():
        identity = f"login {hashlib.sha256(identity.encode()).hexdigest()}"
    checked = claims.get("email_verified") is True
    return Person(
        identity,
        str(claims.get("email") or "").strip() if checked else "",
        str(claims.get("name") or "").strip(),
    )


def shared() -> bool:
    """Whether several people share this server."""
    return os.environ.get("JUSTITIA_MODE", LOCAL) == "shared"


def person() -> Person | None:
    """Who is logged in to this session; None for guests, and on one's own machine."""
    return person_of(st.user.to_dict()) if shared() else None


def owner() -> str:
    """Whose projects and populations this session works with."""
    if not shared():
        return LOCAL
    found = person()
    return GUEST if found is None else found.identity


def actor() -> str:
    """Who acts, for the log of releases."""
    if not shared():
        return account().replace("command line", "workbench")
    found = person()
    return "a guest, on demo data" if found is None else found.words


def demo_only() -> bool:
    """Whether this visitor may work with demo data only."""
    return shared() and person() is None


# -- caps ----------------------------------------------------------------------------------------


def keeps_caps() -> bool:
    """Whether this person may raise any cap: alone on a machine always, else if named."""
    if not shared():
        return True
    found = person()
    named = {entry.strip().casefold() for entry in os.environ.get(KEEPERS, "").split(",")} - {""}
    return found is not None and bool(named & {found.identity.casefold(), found.email.casefold()})


def largest_cap() -> Fraction | None:
    """The largest cap that this person may give a new population; None where there is no limit.

    Raises
    ------
    PlanError
        The server's setting is no budget.
    """
    if keeps_caps():
        return None
    typed = os.environ.get(LARGEST, "").strip() or "1"
    try:
        return as_rho(typed)
    except BudgetError as error:
        raise PlanError(
            f"{LARGEST} is not a positive number; whoever runs this server has to mend it"
        ) from error


def check_cap(cap: Fraction, before: Fraction | None = None) -> None:
    """Refuse a cap that this person may not set.

    Parameters
    ----------
    cap
        The wanted one.
    before
        The one that stands; None for a new population.

    Raises
    ------
    PlanError
        It is above what stands, or above what a new population may have.
    """
    largest = largest_cap()
    if largest is None or cap <= (largest if before is None else before):
        return
    if before is not None:
        raise PlanError("cap: only a keeper of caps may raise it on this server; ask one")
    raise PlanError(
        f"cap: at most ρ = {largest} here for a new population; a keeper of caps may raise it "
        "afterwards"
    )


# -- the door ------------------------------------------------------------------------------------


def login_is_set_up() -> bool:
    """Whether somebody can log in at all: the ``[auth]`` secrets and the library are there."""
    try:
        return "auth" in st.secrets and find_spec("authlib") is not None
    except FileNotFoundError:
        return False


def door() -> None:
    """Who is logged in, and the way in or out; nothing on one's own machine."""
    if not shared():
        return
    from pages.shared.network import plain

    found = person()
    if found is not None:
        st.caption(
            f":material/person: {plain(found.name or found.email or found.identity)}",
            help=f"Your id on this server: {plain(found.identity)}",
        )
        st.button("Log out", icon=":material/logout:", on_click=st.logout, key="log_out")
    elif login_is_set_up():
        st.button("Log in", icon=":material/login:", on_click=st.login, key="log_in")
        st.caption("Without a login: demo data only.")
    else:
        st.caption("No login is set up on this server: demo data only.")
