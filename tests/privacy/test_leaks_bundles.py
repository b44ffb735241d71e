"""No document of a bundle can contradict the release inside it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import core.measuring
import core.runner
from core.bundle import bundle_bytes, verify
from core.errors import BundleError
from core.plan import parse_plan
from core.schema import Schema
from tests.privacy.canaries import (
    OUTLIERS,
    frame,
    plan,
    write,
)


def altered_json(name, **changes):
    def change(files):
        plain = json.loads(files[name])
        plain.update(changes)
        files[name] = (json.dumps(plain, ensure_ascii=False, indent=2) + "\n").encode()

    return change


def swapped(name, old, new):
    def change(files):
        assert old in files[name]
        files[name] = files[name].replace(old, new)

    return change


def swapped_rows(files):
    """Two answers exchanged: every value stays in its domain, and every count of it the same."""
    header, *rows = files["synthetic.csv"].decode().split("\r\n")[:-1]
    first = next(i for i, row in enumerate(rows) if row.endswith(",no"))
    second = next(i for i, row in enumerate(rows) if row.endswith(",yes"))
    rows[first] = rows[first].removesuffix("no") + "yes"
    rows[second] = rows[second].removesuffix("yes") + "no"
    files["synthetic.csv"] = ("\r\n".join([header, *rows]) + "\r\n").encode()


def rewritten_plan(**changes):
    """The plan with declarations of what was not released."""

    def change(files):
        known = parse_plan(files["plan.toml"].decode())
        columns = [
            replace(column, **changes.get(column.name, {})) for column in known.schema.columns
        ]
        files["plan.toml"] = replace(known, schema=Schema(tuple(columns))).to_toml().encode()

    return change


LIES = {
    "plan comment": lambda files: files.update(
        {"plan.toml": b"# approved by the ethics board\n" + files["plan.toml"]}
    ),
    "plan spacing": swapped("plan.toml", b"unit_rows = 2", b"unit_rows  =  2"),
    "plan default": swapped("plan.toml", b"[synthetic]\n", b"[synthetic]\nfiles = ['csv']\n"),
    "plan declares what is not released": rewritten_plan(
        wealth={"kind": "real", "lower": 0, "upper": OUTLIERS[1], "reason": ""}
    ),
    "ledger beyond its cap": altered_json(
        "ledger.json", cap_rho="1/4", spent_rho="1/2", remaining_rho="-1/4"
    ),
    "synthetic values within their domains": swapped_rows,
    "certificate edges": altered_json("certificate.json", edges=[]),
    "certificate words": altered_json("certificate.json", words=["all is well"]),
    "certificate structure": altered_json("certificate.json", structure="privci-exact"),
    "ledger spent": altered_json("ledger.json", spent_rho="1/1000"),
    "ledger spent less, and more left": altered_json(
        "ledger.json", cap_rho="1", spent_rho="1/1000", remaining_rho="999/1000"
    ),
    "ledger cap": altered_json("ledger.json", cap_rho="1/1000"),
    "ledger population": altered_json("ledger.json", population="others"),
    "ledger relation": altered_json("ledger.json", relation="replace_one"),
    "ledger rubbish": altered_json("ledger.json", spends=5),
    "ledger hash": lambda files: files.update(
        {
            "ledger.json": files["ledger.json"].replace(
                b'"release_sha256": "', b'"release_sha256": "0'
            )
        }
    ),
    "plan population": swapped("plan.toml", b'name = "people"', b'name = "others"'),
    "plan unit": swapped("plan.toml", b"unit_rows = 2", b"unit_rows = 1"),
    "plan split": swapped("plan.toml", b'    "1/3",\n    "1/3",\n', b'    "1/2",\n    "1/6",\n'),
    "synthetic rows": lambda files: files.update(
        {"synthetic.csv": frame()[list(plan().released.names)].to_csv(index=False).encode()}
    ),
}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    data = write(folder / "data", "csv")
    (folder / "plan.toml").write_text(plan().to_toml())
    ledger = f"sqlite:///{folder / 'ledger.sqlite'}"
    done = core.runner.run(folder / "plan.toml", data, folder / "out", ledger_url=ledger)
    return dict(done.derived.files)


@pytest.mark.parametrize("lie", sorted(LIES))
def test_no_document_of_a_bundle_can_contradict_its_release(lie, published):
    files = dict(published)
    LIES[lie](files)
    assert files != published
    with pytest.raises(BundleError):
        verify(bundle_bytes(files, False))
