"""The scale benchmark counts what its peers count, and its slope is a slope."""

import math

import pytest

from benchmarks import scale, scale_tasks


def test_every_way_to_count_in_memory_agrees():
    found = scale_tasks.memory("3000", "6", "5")
    assert len({found[way]["digest"] for way in ("ours", "chunks", "whole", "pandas")}) == 1
    assert found["pairs"] == 15
    assert found["sample"] == 5


@pytest.mark.parametrize("texts", ["codes", "texts"])
def test_both_engines_count_the_same_files(tmp_path, monkeypatch, texts):
    monkeypatch.setattr(scale_tasks, "FILE_ROWS", 1000)
    monkeypatch.setattr(scale_tasks, "GROUP_ROWS", 400)
    scale_tasks.write(str(tmp_path), "2500", "5", texts)
    assert len(list(tmp_path.iterdir())) == 3
    path = str(tmp_path / "*.parquet")
    ours = scale_tasks.ours(path, "5", texts, "4", "look")
    peer = scale_tasks.duckdb(path, "5", texts, "4", "every")
    assert ours["rows"] == 2500
    assert ours["count"]["digest"] == peer["count"]["digest"]
    assert ours["look"]["seconds"] > 0


def test_the_slope_of_a_power_law_is_its_power():
    steps = [{"rows": rows, "count": {"cpu": 3e-7 * rows**1.25}} for rows in (10, 100, 5000)]
    assert math.isclose(scale.slope(steps, "cpu"), 1.25)
