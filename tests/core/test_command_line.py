import json
import os
import subprocess
import sys
import zipfile
from fractions import Fraction

import pandas as pd
import pytest

from core.__main__ import main
from core.bundle import verify
from core.errors import BundleError
from core.private.ledger import Ledger, SpendState
from core.releases import TreeRelease
from tests.core.command_line import (
    FILES,
    ROOT,
    ROWS,
    files_in,
    run,
    spends,
)

pytestmark = pytest.mark.usefixtures("home")


def test_a_release_is_written_and_a_second_run_replays_it_for_free(demo, tmp_path, capsys):
    assert run(demo, tmp_path / "one") == 0
    assert "spent rho = 1/2" in capsys.readouterr().out
    assert run(demo, tmp_path / "two") == 0
    assert "replayed, nothing spent" in capsys.readouterr().out
    one, two = files_in(tmp_path / "one"), files_in(tmp_path / "two")
    assert set(one) == FILES
    assert one == two
    (spend,) = spends()
    assert spend.state is SpendState.DONE
    assert spend.rho == Fraction(1, 2)
    assert Fraction(999, 1000) * spend.rho <= spend.debited <= spend.rho
    found = verify(tmp_path / "one" / "bundle.zip")
    assert not found.simulated
    assert len(found.checks) >= 5


def test_what_is_written_is_what_was_declared(demo, tmp_path):
    assert run(demo, tmp_path / "out") == 0
    release = TreeRelease.from_bytes((tmp_path / "out/release.npz").read_bytes())
    synthetic = pd.read_csv(tmp_path / "out/synthetic.csv", dtype=str, keep_default_na=False)
    original = pd.read_csv(demo / "demo.csv", dtype=str, keep_default_na=False, nrows=5)
    modelled = [name for name in original.columns if name in release.schema]
    assert list(synthetic.columns) == modelled
    assert abs(len(synthetic) - ROWS) < 200
    tree = json.loads((tmp_path / "out/tree.json").read_text())
    assert [tuple(edge) for edge in tree["edges"]] == list(release.edges)
    assert tree["forbidden_before"]
    assert all(pair["reason"] for pair in tree["forbidden_before"])
    statement = (tmp_path / "out/statement.md").read_text()
    assert "rho = 0.5" in statement
    assert "3.5 times" not in statement  # that sentence belongs to another budget
    certificate = json.loads((tmp_path / "out/certificate.json").read_text())
    assert all(proof["holds"] for proof in certificate["separation"])


def test_free_settings_do_not_spend(demo, tmp_path):
    assert run(demo, tmp_path / "one") == 0
    plan = demo / "plan.toml"
    free = '[synthetic]\nengine = "auto"\nseed = 0\n'
    assert free in plan.read_text()
    other = '[synthetic]\nengine = "exact"\nseed = 7\nrows = 11\n'
    plan.write_text(plan.read_text().replace(free, other))
    assert run(demo, tmp_path / "two") == 0
    assert len(spends()) == 1
    assert len((tmp_path / "two/synthetic.csv").read_text().splitlines()) == 11 + 1


def test_new_release_spends_again_and_is_what_later_runs_replay(demo, tmp_path, capsys):
    assert run(demo, tmp_path / "one") == 0
    assert run(demo, tmp_path / "two", "--new-release") == 0
    assert len(spends()) == 2
    assert run(demo, tmp_path / "three") == 0
    assert len(spends()) == 2
    one, two, three = (files_in(tmp_path / name) for name in ("one", "two", "three"))
    assert one["release.npz"] != two["release.npz"]
    assert two == three


def test_the_cap_refuses_before_anything_is_touched(demo, tmp_path, capsys):
    for name in ("a", "b", "c", "d"):
        assert run(demo, tmp_path / name, "--new-release") == 0
    capsys.readouterr()
    assert run(demo, tmp_path / "e", "--new-release") == 3
    assert not files_in(tmp_path / "e")
    assert len(spends()) == 4
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert run(demo, tmp_path / "f") == 0  # the replay is still free


def test_another_population_has_another_ledger(demo, tmp_path):
    assert run(demo, tmp_path / "one") == 0
    assert run(demo, tmp_path / "two", "--population", "others") == 0
    assert sorted(p.name for p in Ledger(None).populations()) == ["demo hiring", "others"]
    assert len(spends()) == 2


def test_simulation_is_reproducible_stamped_and_free(demo, tmp_path, capsys):
    assert run(demo, tmp_path / "one", "--simulate", "5") == 0
    assert run(demo, tmp_path / "two", "--simulate", "5") == 0
    assert run(demo, tmp_path / "three", "--simulate", "6") == 0
    one, two, three = (files_in(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two
    assert one != three
    assert not spends()
    assert all("SIMULATED_NOT_PRIVATE_" in name for name in one)
    for name, blob in one.items():
        if name.endswith((".json", ".md")):
            assert b"SIMULATED, NOT PRIVATE" in blob, name
    header = one["SIMULATED_NOT_PRIVATE_synthetic.csv"].splitlines()[0].decode()
    assert "SIMULATED" not in header
    assert verify(tmp_path / "one/SIMULATED_NOT_PRIVATE_bundle.zip").simulated
    assert "flag: SIMULATED" in capsys.readouterr().err


def test_simulation_on_a_table_that_is_no_demo_needs_an_explicit_word(demo, tmp_path, capsys):
    data = demo / "demo.csv"
    lines = data.read_text().splitlines(keepends=True)
    data.write_text("".join(lines[:-1]))
    assert run(demo, tmp_path / "one", "--simulate", "5") == 2
    assert "--allow-real-data" in capsys.readouterr().err
    assert run(demo, tmp_path / "one", "--simulate", "5", "--allow-real-data") == 0


@pytest.mark.parametrize("kind", ["xlsx", "parquet"])
def test_the_same_table_in_another_format_gives_a_release_too(demo, tmp_path, kind):
    frame = pd.read_csv(demo / "demo.csv", dtype=str, keep_default_na=False).head(300)
    path = demo / f"demo.{kind}"
    frame.to_excel(path, index=False) if kind == "xlsx" else frame.to_parquet(path)
    arguments = [
        "run",
        str(demo / "plan.toml"),
        "--data",
        str(path),
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(arguments) == 0
    assert set(files_in(tmp_path / "out")) == FILES


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("header.csv", b"a,b\n"),
        ("picture.csv", b"\x89PNG\r\n\x1a\n0000"),
        ("other.csv", b"x,y\n1,2\n"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3\n"),
    ],
)
def test_bad_files_are_one_line_and_cost_nothing(demo, tmp_path, capsys, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    out = tmp_path / "out"
    assert main(["run", str(demo / "plan.toml"), "--data", str(path), "--out", str(out)]) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    assert error.startswith("justitia: ")
    assert not spends()
    assert not out.exists() or not files_in(out)


def test_missing_files_and_folders(demo, tmp_path, capsys):
    plan = str(demo / "plan.toml")
    assert (
        main(["run", plan, "--data", str(tmp_path / "no.csv"), "--out", str(tmp_path / "o")]) == 2
    )
    assert main(["run", "none.toml", "--data", "x.csv", "--out", str(tmp_path / "o")]) == 2
    assert main(["verify", str(tmp_path / "none.zip")]) == 2
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert run(demo, blocked) == 2
    assert not spends()
    assert len(capsys.readouterr().err.strip().splitlines()) == 4


def test_a_killed_run_leaves_spent_no_result_and_exit_4(demo, tmp_path, capsys):
    script = (
        "import os, core.parts, core.__main__\n"
        "core.parts.release_tree = lambda *a, **k: os.kill(os.getpid(), 9)\n"
        "core.__main__.main(['run', *__import__('sys').argv[1:]])\n"
    )
    arguments = [str(demo / "plan.toml"), "--data", str(demo / "demo.csv"), "--out"]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments, str(tmp_path / "out")],
        cwd=ROOT,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == -9
    assert run(demo, tmp_path / "out") == 4
    assert "--new-release" in capsys.readouterr().err
    (spend,) = spends()
    assert spend.state is SpendState.NO_RESULT
    assert run(demo, tmp_path / "out", "--new-release") == 0
    assert len(spends()) == 2


def test_a_failure_while_measuring_stays_spent(demo, tmp_path, capsys, monkeypatch):
    import core.parts

    def broken(*arguments, **settings):
        raise RuntimeError("value 12345 of somebody")

    monkeypatch.setattr(core.parts, "release_tree", broken)
    assert run(demo, tmp_path / "out") == 4
    assert "12345" not in capsys.readouterr().err
    (spend,) = spends()
    assert spend.state is SpendState.NO_RESULT
    assert "12345" not in spend.message


def test_a_failed_estimate_keeps_the_release(demo, tmp_path, monkeypatch):
    import core.free
    from core.errors import EstimationError

    def broken(*arguments, **settings):
        raise EstimationError("no")

    with monkeypatch.context() as patch:
        patch.setattr(core.free, "fit", broken)
        assert run(demo, tmp_path / "out") == 2
    (spend,) = spends()
    assert spend.state is SpendState.DONE
    assert run(demo, tmp_path / "out") == 0
    assert len(spends()) == 1


def test_the_ledger_lists_what_was_spent(demo, tmp_path, capsys):
    assert main(["ledger"]) == 0
    assert "no population yet" in capsys.readouterr().out
    assert run(demo, tmp_path / "out") == 0
    capsys.readouterr()
    assert main(["ledger", "--population", "demo hiring"]) == 0
    listed = capsys.readouterr().out
    assert "spent rho = 0.5 of 2" in listed
    assert "done" in listed
    assert main(["ledger", "--population", "nobody"]) == 2


def test_every_change_to_a_bundle_is_found(demo, tmp_path):
    assert run(demo, tmp_path / "out") == 0
    original = (tmp_path / "out/bundle.zip").read_bytes()
    verify(original)
    with zipfile.ZipFile(tmp_path / "out/bundle.zip") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for name in content:
        changed = {**content, name: content[name][:-2] + b"0\n"}
        with pytest.raises(BundleError):
            verify(zipped(changed))
        with pytest.raises(BundleError):
            verify(zipped({key: blob for key, blob in content.items() if key != name}))
    with pytest.raises(BundleError, match="not listed"):
        verify(zipped({**content, "../evil.txt": b"x"}))
    for rubbish in (b"", b"PK\x03\x04", original[:100], os.urandom(200)):
        with pytest.raises(BundleError):
            verify(rubbish)


def test_a_softened_statement_is_found_even_with_a_matching_manifest(demo, tmp_path):
    from core.releases import digest

    assert run(demo, tmp_path / "out") == 0
    with zipfile.ZipFile(tmp_path / "out/bundle.zip") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content["statement.md"] = content["statement.md"].replace(b"rho = 0.5", b"rho = 0.1")
    manifest = json.loads(content["manifest.json"])
    manifest["files"]["statement.md"]["sha256"] = digest(content["statement.md"])
    content["manifest.json"] = json.dumps(manifest).encode()
    with pytest.raises(BundleError, match=r"statement\.md does not follow"):
        verify(zipped(content))


def zipped(content):
    import io

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, blob in content.items():
            archive.writestr(name, blob)
    return buffer.getvalue()


def test_a_first_plan_for_ones_own_table(tmp_path, capsys):
    data = tmp_path / "staff.csv"
    data.write_text(
        "sex;age;hired;note\n"
        + "".join(f"{'fm'[i % 2]};{20 + i % 40};{'yn'[i % 3 == 0]};x{i}\n" for i in range(200))
    )
    plain, suggested = tmp_path / "plain.toml", tmp_path / "suggested.toml"
    assert main(["draft", "--data", str(data), "--out", str(plain)]) == 0
    assert "not declared yet" in capsys.readouterr().err
    assert main(["draft", "--data", str(data), "--suggest", "--out", str(suggested)]) == 0
    out = tmp_path / "out"
    assert main(["run", str(suggested), "--data", str(data), "--out", str(out)]) == 0
    assert "data-dependent domain" in (out / "statement.md").read_text()
    assert "flag: data-dependent domain" in capsys.readouterr().err


def test_a_plan_without_any_declared_column_is_refused(tmp_path, capsys):
    data = tmp_path / "staff.csv"
    data.write_text("sex;age\nf;20\nm;30\n")
    assert main(["draft", "--data", str(data), "--out", str(tmp_path / "p.toml")]) == 0
    arguments = ["run", str(tmp_path / "p.toml"), "--data", str(data), "--out", str(tmp_path / "o")]
    assert main(arguments) == 2
    assert not spends()
