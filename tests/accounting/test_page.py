"""The Ledger page says in one line whether the chain holds."""

from streamlit.testing.v1 import AppTest

from pages.shared import house
from tests.accounting.books import alter
from tests.app.conftest import app, go, own_ledger
from tests.app.test_journey import released, words

__all__ = ["app", "own_ledger"]


def test_the_page_says_whether_the_chain_holds(app: AppTest) -> None:
    released(app)
    go(app, "ledger")
    assert "Chain intact: 4 rows" in words(app).replace("\\", "")
    alter(house.ledger(), "UPDATE justitia_spend SET rho = '1/1000'")
    go(app, "ledger")
    shown = words(app).replace("\\", "")
    assert "Chain intact" not in shown
    assert "the charge of row 3" in shown
    assert "--mend" in shown
