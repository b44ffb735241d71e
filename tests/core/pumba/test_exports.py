"""Posteriors as files: what is in them, digit by digit, and both forms of ArviZ."""

import csv
import io
import json
import sys
import types

import numpy as np
import pyarrow.parquet as pq
import pytest

from core.errors import EstimationError
from core.pumba.draws import Diagnostics, ParameterDraws
from core.pumba.exports import (
    chains,
    csv_bytes,
    document,
    draws_bytes,
    inference_data,
    parquet_bytes,
    settings_document,
    summary_rows,
)
from core.pumba.posterior import Posterior
from core.pumba.priors import NormalPrior
from core.pumba.settings import Settings
from core.pumba.summaries import summarize
from core.pumba.warnings import PosteriorWarning, Severity


def made(title="pay", names=("mean", "p(sex=é, ü)"), size=10, settings=None):
    settings = settings or Settings()
    generator = np.random.default_rng(5)
    values = generator.normal(size=(size, len(names))) / 3
    naive = np.array([[0.1, 0.2], [np.nan, np.nan]])[: len(names)]
    parameters = ParameterDraws(
        tuple(names), values, values + 0.5, naive, Diagnostics("exact"), ("a bound was used",)
    )
    warning = PosteriorWarning("P9", Severity.NOTE, "Noise as stated.", "Check it.")
    return Posterior(title, parameters, summarize(parameters), (warning,), settings)


def test_csv_has_twelve_digits_and_empty_cells_for_the_undefined():
    one = made()
    text = csv_bytes([one, made("age")]).decode("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["analysis"], row["parameter"]) for row in rows] == [
        ("pay", "mean"),
        ("pay", "p(sex=é, ü)"),
        ("age", "mean"),
        ("age", "p(sex=é, ü)"),
    ]
    for row, parameter in zip(rows, one.summary, strict=False):
        assert row["mean"] == f"{parameter.mean:.12g}"
        assert float(row["hdi_high"]) == pytest.approx(parameter.hdi_high, rel=1e-11)
    assert rows[0]["level"] == "0.95"
    assert rows[1]["naive_low"] == rows[1]["r_hat"] == rows[1]["rope_probability"] == ""
    assert "\r" not in text


def test_parquet_holds_the_same_rows():
    one = made()
    table = pq.read_table(io.BytesIO(parquet_bytes([one])))
    assert table.to_pylist() == summary_rows([one])
    assert table.column("naive_low").null_count == 1


def test_the_document_is_plain_json():
    rope = {"mean": (-0.1, 0.1)}
    settings = Settings(priors={"mean": NormalPrior(0.0, 2.0)}, rope=rope, population_size=50)
    plain = json.loads(json.dumps(document([made(settings=settings)]), allow_nan=False))
    (one,) = plain["posteriors"]
    assert one["analysis"] == "pay"
    assert one["parameters"][1]["naive"] is None
    assert one["warnings"] == [
        {
            "code": "P9",
            "severity": "note",
            "sentence": "Noise as stated.",
            "advice": "Check it.",
        }
    ]
    assert one["notes"] == ["a bound was used"]
    assert one["sampling"]["method"] == "exact"
    assert one["sampling"]["acceptance"] is None
    assert one["settings"]["priors"] == {"mean": {"mean": 0.0, "sd": 2.0}}
    assert one["settings"]["rope"] == {"mean": [-0.1, 0.1]}
    assert plain["privacy_cost"].startswith("none")
    assert settings_document(Settings(rope=(0.0, 1.0)))["rope"] == [0.0, 1.0]
    assert settings_document(Settings())["rope"] is None


def test_draws_need_no_pickle_and_come_back_whole():
    first, second = made(), made("age", names=("sd",))
    blob = draws_bytes([first, second])
    with np.load(io.BytesIO(blob), allow_pickle=False) as archive:
        assert int(archive["analyses"]) == 2
        assert str(archive["title_1"]) == "age"
        assert tuple(archive["names_0"]) == first.parameters.names
        assert np.array_equal(archive["values_0"], first.parameters.values)
        assert np.array_equal(archive["repeats_1"], second.parameters.repeats)
    assert blob == draws_bytes([first, second])


@pytest.mark.parametrize("export", [csv_bytes, parquet_bytes, document, draws_bytes])
def test_titles_tell_analyses_apart(export):
    with pytest.raises(EstimationError, match="two analyses are called 'pay'"):
        export([made(), made()])
    with pytest.raises(EstimationError, match="no posterior"):
        export([])


# -- ArviZ ---------------------------------------------------------------------------------------


def fake(monkeypatch, version, from_dict):
    module = types.ModuleType("arviz")
    module.__version__ = version
    module.from_dict = from_dict
    monkeypatch.setitem(sys.modules, "arviz", module)


def test_four_chains_without_the_remainder():
    values = np.arange(20.0).reshape(10, 2)
    blocks = chains(values)
    assert blocks.shape == (4, 2, 2)
    assert blocks[1, 0].tolist() == values[2].tolist()


def test_the_form_of_arviz_before_one(monkeypatch):
    def from_dict(*, posterior):
        return {"old": posterior}

    fake(monkeypatch, "0.23.4", from_dict)
    group = inference_data(made())["old"]
    assert list(group) == ["mean", "p(sex=é, ü)"]
    assert group["mean"].shape == (4, 2)


def test_the_form_of_arviz_from_one_on(monkeypatch):
    def from_dict(data):
        return {"new": data}

    fake(monkeypatch, "1.0.0", from_dict)
    one = made()
    group = inference_data(one)["new"]["posterior"]
    assert group["mean"].ravel().tolist() == one.parameters.values[:8, 0].tolist()


def test_arviz_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(EstimationError, match="needs the package arviz"):
        inference_data(made())
