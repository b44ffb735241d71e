"""Hypothesis strategies for declarations and for the dirt that files hold."""

from datetime import date

from hypothesis import HealthCheck, reject, settings
from hypothesis import strategies as st

from core.errors import SchemaError
from core.schema import DATE_UNITS, Column, Kind, Schema

#: Shared machines are slow at times; what counts is what is found, not how fast.
QUICK = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
LABELS = TEXTS.filter(str.strip)
DIRT = st.one_of(
    TEXTS,
    st.sampled_from(
        ["", " ", "?", "nan", "inf", "-inf", "1e400", "-0.0", "1,5", "1.234,5", "12o", "0x1", "1_0"]
    ),
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(repr),
    st.dates().map(str),
    st.datetimes().map(str),
    st.sampled_from(["2024-02-31", "0000-01-01", "20240131", "31.12.2024", "yes", "FALSE", "1"]),
)


@st.composite
def columns(draw, name="x", kinds=tuple(Kind)):
    kind = draw(st.sampled_from(kinds))
    settings = {
        "missing_markers": draw(st.lists(st.sampled_from(["", "?", "n/a", "999", "-"]), max_size=3))
    }
    if kind in (Kind.CATEGORICAL, Kind.ORDINAL, Kind.BOOLEAN):
        sizes = (2, 2) if kind is Kind.BOOLEAN else (1, 6)
        settings["categories"] = draw(
            st.lists(LABELS, min_size=sizes[0], max_size=sizes[1], unique=True)
        )
        settings["other_label"] = draw(
            st.sampled_from(["(other)", "(missing)", settings["categories"][0]])
        )
        settings["missing_label"] = draw(st.sampled_from(["(missing)", settings["categories"][-1]]))
        constants = settings["categories"]
    elif kind in (Kind.INTEGER, Kind.REAL):
        low = draw(st.integers(-1000, 1000))
        high = low + draw(st.integers(1, 2000))
        if kind is Kind.REAL:
            scale = draw(st.sampled_from([1, 0.01, 1e-7, 1e9]))
            low, high = low * scale, high * scale
            settings["decimals"] = draw(st.one_of(st.none(), st.integers(0, 12)))
        settings |= {"lower": low, "upper": high}
        settings["bins"] = draw(st.one_of(st.none(), st.integers(1, 40)))
        settings["out_of_domain"] = draw(st.sampled_from(["clip", "other"]))
        constants = [low, high]
    elif kind is Kind.DATE:
        first, last = sorted(
            draw(st.tuples(st.dates(date(1000, 1, 1)), st.dates(date(1000, 1, 1))))
        )
        settings |= {"lower": str(first), "upper": str(last)}
        settings["unit"] = draw(st.sampled_from(DATE_UNITS))
        settings["date_format"] = draw(
            st.sampled_from([None, "%Y%m%d", "%d.%m.%Y", "%m/%Y", "%d %b %Y %H:%M"])
        )
        settings["out_of_domain"] = draw(st.sampled_from(["clip", "other"]))
        constants = [str(first), str(last)]
    else:
        constants = []
    if constants and draw(st.booleans()):
        settings |= {"missing": "constant", "missing_constant": draw(st.sampled_from(constants))}
    settings["data_dependent"] = draw(st.booleans())
    try:
        return Column(name, kind, **settings)
    except SchemaError:
        reject()


MODELLED = tuple(kind for kind in Kind if kind not in (Kind.TEXT, Kind.IDENTIFIER))


@st.composite
def schemas(draw, kinds=MODELLED):
    names = draw(st.lists(LABELS, min_size=1, max_size=4, unique=True))
    return Schema(tuple(draw(columns(name, kinds)) for name in names))
