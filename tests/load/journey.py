"""The demo from the first click to a verified bundle, as one person's work."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep

from tests.load.client import PATIENCE, Client, Trouble

#: A page, what is done there, and the words that then stand on it.
DECLARED = (
    ("data", "confirm_schema", "Confirmed."),
    ("roles", "save_roles", "Roles are saved"),
    ("budget", "apply_plan", "The plan is applied"),
)


@dataclass(frozen=True)
class Finished:
    """One journey: how long it took, the bundle, and the places in the queue that were shown."""

    seconds: float
    bundle: bytes
    places: tuple[str, ...]


def declare(client: Client, demo: str = "hiring") -> None:
    """Up to an applied plan."""
    client.click(f"demo_{demo}")
    for page, button, then in DECLARED:
        client.go(page)
        if page == "data":
            client.tick("public_domain")
        client.click(button)
        if not client.says(then):
            raise Trouble(f"after {button}: {client.texts[-12:]}")


def release(client: Client) -> tuple[str, ...]:
    """Release the tree and watch it; returns the places in the queue that were shown."""
    client.go("tree")
    client.click("release_tree")
    places = {text for text in client.texts if "waiting" in text}
    client.wait_for("The tree as it grew", "This did not work", "Spent, no result")
    places |= {text for text in client.texts if "waiting" in text}
    if not client.says("The tree as it grew"):
        raise Trouble(f"no tree: {client.texts[-12:]}")
    return tuple(sorted(places))


def release_and_leave(client: Client) -> tuple[str, ...]:
    """Release the tree and look at another page until it is there, instead of watching it."""
    client.go("tree")
    client.click("release_tree")
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline:
        client.go("synthetic")
        if any(identity.endswith("-fit_and_sample") for identity in client.widgets):
            return ()
        sleep(0.3)
    raise Trouble(f"no tree: {client.texts[-12:]}")


def fit_sign_download(client: Client, *, clicks: int = 1) -> bytes:
    """The free rest of the way; returns the bundle."""
    client.go("synthetic")
    client.click("fit_and_sample")
    client.wait_for("Every rule is proved")
    client.go("release")
    client.wait_for("In the bundle")
    client.fill("signer", "A. Steward")
    client.fill("purpose", "load test")
    client.submit("Sign", times=clicks)
    client.wait_for("Signed by A. Steward")
    return client.download("bundle")[1]


def whole_journey(address: str, *, watch: bool = True) -> Finished:
    """Everything, in a session of its own; ``watch`` the tree grow, which takes its time."""
    begun = monotonic()
    with Client(address) as client:
        declare(client)
        places = release(client) if watch else release_and_leave(client)
        bundle = fit_sign_download(client)
    return Finished(monotonic() - begun, bundle, places)


def at_once(people: int, address: str, *, watch: bool = True) -> list[Finished]:
    """So many people do the same at the same time; the first trouble of any of them is raised."""
    with ThreadPoolExecutor(people) as pool:
        return list(pool.map(partial(whole_journey, watch=watch), [address] * people))
