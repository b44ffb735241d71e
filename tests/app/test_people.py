"""Who is here, whose data they see, and who may do what to a cap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import PlanError
from core.private.accounts import Population
from core.release_log import Act, ReleaseLog
from core.releases import Relation, Unit
from core.retention import Policy, enforce
from pages.shared import house, people
from pages.shared.people import GUEST, LOCAL, check_cap, person_of
from pages.shared.project import KEY
from pages.shared.widgets import place_in_line
from tests.app.conftest import ROOT, go
from tests.app.test_data_page import STAFF, declare_as, opened, upload
from tests.app.test_journey import released, rows, words

ANNA = {"is_logged_in": True, "sub": "anna", "email": "anna@example.org", "email_verified": True}


def test_the_same_subject_of_another_issuer_is_another_person() -> None:
    one = person_of({**ANNA, "iss": "https://a.example"})
    other = person_of({**ANNA, "iss": "https://b.example"})
    assert one is not None
    assert other is not None
    assert one.identity != other.identity


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"is_logged_in": False, "sub": "anna"},
        {"is_logged_in": True},
        {"is_logged_in": True, "sub": "  "},
        {"is_logged_in": True, "email": "anna@example.org", "email_verified": True},
    ],
)
def test_nobody_is_somebody_without_a_subject(claims: dict[str, object]) -> None:
    assert person_of(claims) is None


@pytest.mark.parametrize("name", [LOCAL, GUEST])
def test_no_subject_becomes_the_house_or_its_guests(name: str) -> None:
    found = person_of({"is_logged_in": True, "sub": name})
    assert found is not None
    assert found.identity not in {LOCAL, GUEST}


def test_any_subject_makes_a_name_that_the_ledger_takes() -> None:
    from core.private.accounts import check_name

    for subject in ("x" * 5000, "tab\tand\nline", "ü" * 150, "\u202eanna"):
        found = person_of({"is_logged_in": True, "sub": subject, "iss": "https://a.example"})
        assert found is not None
        check_name(found.identity, "an owner's name")
    long = [person_of({"is_logged_in": True, "sub": "x" * 300 + end}) for end in "ab"]
    assert long[0].identity != long[1].identity  # type: ignore[union-attr]


def test_an_address_counts_only_where_the_issuer_checked_it() -> None:
    assert person_of(ANNA).email == "anna@example.org"  # type: ignore[union-attr]
    for unchecked in (False, None, "true", 1):
        found = person_of({**ANNA, "email_verified": unchecked})
        assert found is not None
        assert found.email == ""


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("JUSTITIA_MODE", "shared")
    monkeypatch.setenv("JUSTITIA_CAP_KEEPERS", "Carla@example.org")
    return monkeypatch


def log_in(monkeypatch: pytest.MonkeyPatch, **claims: object) -> None:
    monkeypatch.setattr(people, "person", lambda: person_of({**ANNA, **claims}))


def test_caps_are_raised_by_their_keepers_alone(shared: pytest.MonkeyPatch) -> None:
    log_in(shared)
    check_cap(Fraction(1))
    with pytest.raises(PlanError, match="at most ρ = 1 here for a new population"):
        check_cap(Fraction(101, 100))
    check_cap(Fraction(1), before=Fraction(2))
    with pytest.raises(PlanError, match="only a keeper of caps may raise it"):
        check_cap(Fraction(3), before=Fraction(2))
    shared.setenv("JUSTITIA_LARGEST_CAP", "1/4")
    with pytest.raises(PlanError, match="at most ρ = 1/4"):
        check_cap(Fraction(1))
    shared.setenv("JUSTITIA_LARGEST_CAP", "a lot")
    with pytest.raises(PlanError, match="whoever runs this server has to mend it"):
        check_cap(Fraction(1, 100))
    log_in(shared, sub="carla", email="carla@example.org")
    check_cap(Fraction(50), before=Fraction(2))
    log_in(shared, sub="carla", email="carla@example.org", email_verified=False)
    assert not people.keeps_caps()


def test_alone_on_a_machine_every_cap_is_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUSTITIA_MODE", raising=False)
    check_cap(Fraction(1000))


def test_a_new_population_over_the_limit_is_not_confirmed(app: AppTest, shared) -> None:
    app.user = ANNA
    upload(opened(app), "staff.csv", STAFF)
    project = app.session_state[KEY]
    app.text_input(key=f"population_{project.generation}_cap").set_value("7").run()
    declare_as(app, "demo staff")  # a name alone makes nobody's people made up
    assert "at most ρ = 1 here for a new population" in words(app)
    assert app.session_state[KEY].schema is None
    app.text_input(key=f"population_{project.generation}_cap").set_value("1").run()
    app.button(key="confirm_schema").click().run()
    assert app.session_state[KEY].schema is not None


def test_nobody_reads_a_release_by_its_request_id(app: AppTest, shared) -> None:
    released(app)
    (spend,) = [
        s
        for p in house.ledger().populations()
        for s in house.ledger().spends(p.name, owner=p.owner)
    ]
    assert spend.owner == GUEST
    log_in(shared)
    assert house.spend(spend.request_id) is None
    assert house.stored_release(spend.request_id) is None


def test_the_door_leads_in_and_says_who_is_in(app: AppTest, shared) -> None:
    app.user = {"is_logged_in": False}
    app.run()
    assert not app.exception
    assert "No login is set up on this server" in words(app)
    other = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    other.user = {**ANNA, "name": "Anna *Bold*"}
    other.run()
    assert not other.exception
    assert any(button.key == "log_out" for button in other.button)
    assert "Anna \\*Bold\\*" in words(other)


def test_who_asked_and_who_signed_is_logged(app: AppTest) -> None:
    released(app)
    (entry,) = ReleaseLog(house.ledger()).entries()
    (spend,) = rows()
    assert (entry.act, entry.request_id) == (Act.ASKED, spend.request_id)
    assert entry.actor.endswith("(workbench)")


def test_accounts_and_log_of_others_are_for_keepers_of_caps_alone(app: AppTest, shared) -> None:
    log_in(shared)
    app.run()
    terms = Population("emils staff", Relation.ADD_REMOVE, Unit(), Fraction(1), owner="emil")
    house.ledger().create_population(terms)
    ReleaseLog(house.ledger()).add("emil", Act.SIGNED, owner="emil", population="emils staff")
    go(app, "ledger")
    assert not app.exception
    assert not app.dataframe
    log_in(shared, sub="carla", email="carla@example.org")
    app.run()
    assert len(app.dataframe) == 2
    assert all("emils staff" in list(shown.value["population"]) for shown in app.dataframe)


def test_a_result_that_retention_deleted_is_missed_without_a_fault(app: AppTest) -> None:
    released(app)
    before = house.ledger().spent(house.ledger().populations()[0].name)
    enforce(
        house.ledger(),
        Policy(releases=timedelta(days=1)),
        "an administrator",
        datetime.now(UTC) + timedelta(days=2),
    )
    app.session_state[KEY].releases.clear()
    for page in ("tree", "synthetic", "release", "ledger", "start"):
        go(app, page)
    assert house.ledger().spent(house.ledger().populations()[0].name) == before
    assert "deleted under the retention policy" in words(go(app, "tree"))


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (0, "starts next"),
        (1, "second in line"),
        (2, "third in line"),
        (9, "tenth in line"),
        (10, "11th in line"),
        (20, "21st in line"),
        (110, "111th in line"),
    ],
)
def test_a_place_in_the_queue_in_words(ahead: int, said: str) -> None:
    assert place_in_line(ahead) == said
