"""The page Learn: needs no project, spends nothing, and every control changes what it should."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from core import demo, lessons
from pages.shared import network
from pages.shared.lanes import Lane, lay_out
from pages.shared.learn_controls import bits, points
from pages.shared.learn_pictures import roles_in
from tests.app.conftest import go
from tests.app.test_journey import rows, words


def opened(app: AppTest, step: str = "worlds") -> AppTest:
    app.run()
    go(app, "learn")
    if step != "worlds":
        press(app, "learn_step", step)
    return app


def press(app: AppTest, key: str, value: object) -> AppTest:
    """Choose in a segmented control, and look at the page."""
    app.segmented_control(key=key).set_value(value).run()
    assert not app.exception, app.exception[0].message
    return app


def figures(app: AppTest) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for metric in app.metric:
        found.setdefault(metric.label, []).append(metric.value)
    return found


def drawn(app: AppTest) -> str:
    """Every plotly figure of the page as text."""
    return json.dumps([json.loads(chart.proto.spec) for chart in app.get("plotly_chart")])


def test_it_opens_without_a_project_and_says_that_it_is_simulated(app):
    opened(app)
    assert app.title[0].value == "Learn"
    text = words(app)
    assert "Simulated, not private" in text
    assert "nothing here costs budget" in text
    assert [item.value for item in app.subheader] == [
        "True world",
        "Biased world",
        "Released world",
    ]
    assert all(chart.proto.alt for chart in app.get("plotly_chart"))
    assert rows() == []


@pytest.mark.parametrize("name", demo.names())
@pytest.mark.parametrize("step", ["worlds", "noise", "proxies"])
def test_every_step_of_every_world_draws(app, name, step):
    opened(app, step)
    press(app, "learn_world", name)
    press(app, "learn_rule", "mst")
    assert app.get("plotly_chart")
    assert rows() == []


def test_the_figures_are_the_lesson_s_own(app):
    opened(app)
    found = lessons.worlds("hiring", app.select_slider(key="learn_rho").value)
    gaps = [points(world.gaps.of("woman").gap) for world in found.shown]
    assert figures(app)["Gap by gender"] == gaps
    assert gaps[2] == "0 points"
    information = figures(app)["Information around the gates"]
    assert information[0] == bits(found.true.rows.bits)
    assert information[1] == bits(found.biased.rows.bits)
    assert information[2] == "0 bits"


def test_dropping_the_rule_brings_the_forbidden_path_back(app):
    opened(app)
    assert words(app).count("jumps the wall") == 1  # the biased world itself
    press(app, "learn_rule", "mst")
    assert words(app).count("jumps the wall") == 2
    assert figures(app)["Information around the gates"][2] != "0 bits"
    press(app, "learn_rule", "privci")
    assert words(app).count("jumps the wall") == 1
    assert figures(app)["Information around the gates"][2] == "0 bits"


def test_a_path_that_jumps_is_drawn_dashed_across_the_wall():
    about = lessons.Stage.of("hiring")
    found = lessons.worlds("hiring", "1", "mst").released
    edges = lessons.outline(about, found.edges)
    layout = lay_out(sorted(about.judge.columns), roles_in(about), edges, constraint=about.judge)
    assert [link.edge for link in layout.links if link.illegal] == [("gender", "hired")]
    picture = network.draw(
        sorted(about.judge.columns), roles_in(about), edges, constraint=about.judge
    )
    legends = [note for note in picture.layout.annotations if note.text == network.JUMPS]
    assert len(legends) == 1
    lowest = min(spot.y for spot in layout.spots)
    assert picture.layout.yaxis.range[0] < legends[0].y < lowest - 0.5, "below every column"
    small = network.draw(
        sorted(about.judge.columns), roles_in(about), edges, constraint=about.judge, narrow=True
    )
    assert not any(note.text == network.JUMPS for note in small.layout.annotations)
    kept = lessons.worlds("hiring", "1").released
    edges = lessons.outline(about, kept.edges)
    layout = lay_out(sorted(about.judge.columns), roles_in(about), edges, constraint=about.judge)
    assert not any(link.illegal for link in layout.links)
    picture = network.draw(
        sorted(about.judge.columns), roles_in(about), edges, constraint=about.judge
    )
    assert not any(note.text == network.JUMPS for note in picture.layout.annotations)
    assert layout.spot("gender").lane is Lane.PROTECTED
    assert layout.spot("hired").lane is Lane.OUTCOME


def test_the_noise_is_redrawn_and_comes_back(app):
    opened(app, "noise")
    app.select_slider(key="learn_rho").set_value("1/100000").run()
    first = drawn(app)
    app.button(key="learn_next").click().run()
    assert not app.exception
    assert app.number_input(key="learn_draw").value == 1
    assert "draw 1" in words(app)
    assert drawn(app) != first
    app.number_input(key="learn_draw").set_value(0).run()
    assert drawn(app) == first


def test_more_budget_settles_the_tree(app):
    opened(app, "noise")
    shares = []
    for rho in ("1/1000000", "1/10000", "1"):
        app.select_slider(key="learn_rho").set_value(rho).run()
        assert not app.exception
        shares.append(float(figures(app)["Edges as without noise"][0].rstrip("%")))
        assert figures(app)["Draws that break the rule"] == ["0%"]
    assert shares == sorted(shares)
    assert shares[0] < 40
    assert shares[-1] > 95
    press(app, "learn_rule", "mst")
    assert figures(app)["Draws that break the rule"] == ["100%"]


def test_a_hidden_column_comes_back_through_its_proxy_until_that_is_declared(app):
    opened(app, "proxies")
    assert "is **open**" in words(app)
    assert figures(app)["Its link to hired"] != ["0 bits"]
    pills = app.get("button_group")
    (proxies,) = [one for one in pills if one.key == "learn_proxies_hiring"]
    proxies.set_value(["career_gap_months"]).run()
    assert not app.exception
    assert "is **closed** by the rule" in words(app)
    assert figures(app)["Its link to hired"] == ["0 bits"]
    app.toggle(key="learn_hidden_hiring").set_value(False).run()
    assert not app.exception
    assert figures(app)["Its link to hired"] == ["0 bits"]
    press(app, "learn_rule", "mst")
    assert "a proxy changes nothing" in words(app)


@pytest.mark.parametrize("step", ["worlds", "noise", "proxies"])
def test_a_guess_comes_before_its_answer(app, step):
    opened(app, step)
    radios = list(app.radio)
    assert len(radios) >= 2
    for index in range(len(radios)):
        radio = app.radio[index]
        answer = app.toggle(key=radio.key.replace("guess", "answer"))
        assert answer.disabled
        before = len(app.success)
        radio.set_value(1).run()  # the second option is right in each of them
        assert len(app.success) == before
        app.toggle(key=answer.key).set_value(True).run()
        assert not app.exception
        assert len(app.success) == before + 1
        assert "**Right.**" in app.success[-1].value
        app.radio[index].set_value(0).run()
        assert len(app.success) == before
        assert "**Right.**" not in app.info[-1].value
        app.radio[index].set_value(1).run()
    assert rows() == []


def test_settings_survive_a_visit_to_another_page(app):
    opened(app)
    press(app, "learn_world", "lending")
    app.select_slider(key="learn_rho").set_value("1/10").run()
    go(app, "start")
    go(app, "learn")
    assert app.select_slider(key="learn_rho").value == "1/10"
    assert app.segmented_control(key="learn_world").value == "lending"


def test_small_numbers_are_never_shown_as_minus_zero():
    assert points(-1e-17) == points(0.0) == "0 points"
    assert points(-0.0004) == "0.0 points"
    assert points(-0.2548) == "−25.5 points"
    assert points(0.2561) == "+25.6 points"
    assert bits(1e-17) == "0 bits"
    assert bits(0.0722) == "0.0722 bits"
