"""The stored form of a covariance release."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ReleaseError
from core.pace.estimate import estimate
from core.pace.release import METHODS, CovarianceRelease
from core.releases import pack_bytes
from tests.core.pace.tables import BOTH, correlated, released


def example(method="pace", **settings_):
    return released(correlated(120, 4, 1), "1/2", method=method, means="private", **settings_)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("method", METHODS)
def test_bytes_hold_everything(method, relation):
    release = example(method, relation=relation)
    blob = release.to_bytes()
    again = CovarianceRelease.from_bytes(blob)
    assert again.to_bytes() == blob
    assert again.provenance == release.provenance
    assert (again.rows, again.clip, again.draws) == (release.rows, release.clip, release.draws)
    assert again.rounds == release.rounds
    np.testing.assert_array_equal(again.sums, release.sums)
    np.testing.assert_array_equal(estimate(again).covariance, estimate(release).covariance)


def parts(release):
    with np.load(io.BytesIO(release.to_bytes())) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes())
    return header, arrays


def spoiled(change):
    header, arrays = parts(example())
    change(header, arrays)
    return pack_bytes(header, arrays)


SPOILS = {
    "another type": lambda h, a: h.update(type="TreeRelease"),
    "unknown method": lambda h, a: h.update(method="magic"),
    "no scales": lambda h, a: h.update(scales=[]),
    "infinite sum": lambda h, a: a["sums"].__setitem__(0, np.inf),
    "missing sums": lambda h, a: a.pop("sums"),
    "short sigmas": lambda h, a: a.update(sigmas=a["sigmas"][:-1]),
    "negative sigma": lambda h, a: a["sigmas"].__setitem__(0, -1.0),
    "pair outside": lambda h, a: a["pairs"].__setitem__((0, 1), 9),
    "pairs of three": lambda h, a: a.update(pairs=np.zeros((len(a["sums"]), 3), dtype=np.int64)),
    "short means": lambda h, a: a.update(mean_values=a["mean_values"][:-1]),
    "draw cut": lambda h, a: h["draws"].pop(),
    "draw moved": lambda h, a: h["draws"][0].update(stop=1),
    "odd fraction": lambda h, a: h["draws"][0].update(rho="1/0"),
    "odd scale": lambda h, a: h["scales"][0].__setitem__(2, -1.0),
    "no rows": lambda h, a: h.pop("rows"),
    "rounds are text": lambda h, a: h.update(rounds="many"),
    "round without a draw": lambda h, a: h["rounds"][0].update(draw=999),
    "round of strangers": lambda h, a: h["rounds"][0].update(chosen=["q", "z"]),
    "schema is gone": lambda h, a: h.pop("schema"),
}


@pytest.mark.parametrize("name", sorted(SPOILS))
def test_malformed_releases_are_refused(name):
    with pytest.raises(ReleaseError):
        CovarianceRelease.from_bytes(spoiled(SPOILS[name]))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_damaged_bytes_are_a_release_error(data):
    blob = bytearray(example().to_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(blob) - 1))
        blob[place] = data.draw(st.integers(0, 255))
    try:
        release = CovarianceRelease.from_bytes(bytes(blob))
    except ReleaseError:
        return
    assert release.size == 4  # the change was in bytes that nobody reads


def test_a_pickle_is_refused():
    header, arrays = parts(example())
    arrays["sums"] = np.array([{"a": 1}], dtype=object)
    buffer = io.BytesIO()
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez_compressed(buffer, header=text, **arrays)
    with pytest.raises(ReleaseError):
        CovarianceRelease.from_bytes(buffer.getvalue())


def test_the_estimand_is_said_in_words():
    private = example().estimand
    assert "released noisy means" in private
    assert "are left out" in private
    public = released(correlated(120, 4, 1), "1/2").estimand
    assert "declared means" in public
    clipped = released(correlated(3000, 30, 1), "1/2", method="ssp_clip_sure")
    assert clipped.clip.squared < 30
    assert f"{float(clipped.clip.squared):.4g} (of 30)" in clipped.estimand


def test_draws_say_which_lattice_they_live_on():
    """Each noisy sum is a whole number of steps, squares of a finer one."""
    release = released(correlated(500, 4, 2), "1/2", method="ssp_tight", relation=BOTH[1])
    (draw,) = release.draws
    assert draw.diagonal_weight > 1
    squares = release.pairs[:, 0] == release.pairs[:, 1]
    steps = np.where(squares, draw.step / float(draw.diagonal_weight), draw.step)
    counts = release.sums / steps
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-3)
    assert np.abs(counts).max() > 1000
