"""Doors that a stranger's file can knock at, and how each must behave.

A door takes bytes.  It gives a right result or raises one of our own errors, whose message is one
short line; an error about a confidential table holds no cell of it, nor do its causes.
"""

from __future__ import annotations

import json
import tomllib
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from core.errors import JustitiaError
from core.private.reading import HeaderError
from tests.hostile import mutation, seeds

#: Longest message that a person reads.
LONGEST_MESSAGE = 4000


class Misbehaved(AssertionError):
    """A door let a foreign error out, told too much, or told it badly."""


@dataclass(frozen=True)
class Door:
    """One way in.

    Attributes
    ----------
    read
        What the product does with the file, up to where something would be spent.
    inputs
        Endless damaged inputs from a generator of random numbers.
    confidential
        Whether messages must not quote the file.
    """

    name: str
    read: Callable[[bytes], object]
    damage: Callable[[Random], bytes]
    confidential: bool = False

    def __repr__(self) -> str:
        return self.name


def knock(door: Door, data: bytes) -> JustitiaError | None:
    """Try one input; returns the error that a person would see.

    Raises
    ------
    Misbehaved
        With what was wrong.
    """
    try:
        door.read(data)
    except JustitiaError as error:
        check_message(error, confidential=door.confidential)
        return error
    except Exception as error:
        where = "".join(traceback.format_tb(error.__traceback__)[-3:])
        raise Misbehaved(f"{door.name} raised {type(error).__name__}: {error}\n{where}") from error
    return None


def check_message(error: BaseException, *, confidential: bool) -> None:
    """One short line, and nothing confidential in it or below it."""
    message = str(error)
    if "\n" in message or not message.strip():
        raise Misbehaved(f"not one line: {message[:300]!r}")
    if len(message) > LONGEST_MESSAGE:
        raise Misbehaved(f"{len(message)} characters: {message[:200]!r}")
    # Of a file without a header the first row is taken for one, and names are shown.
    if confidential and not isinstance(error, HeaderError):
        told = "".join(map(repr, chain(error))) + message
        for canary in seeds.CANARIES:
            if canary in told:
                raise Misbehaved(f"quotes a cell: {told[:300]!r}")


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what a printed traceback would show below it."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


# -- what the product does with each file ------------------------------------------------------


def read_rows(name: str) -> Callable[[bytes], object]:
    """Reading, suggesting, checking, coding and recognising a table: all before a charge."""

    def read(data: bytes) -> object:
        from core.private.coding import encode
        from core.private.fingerprint import fingerprint
        from core.private.fitness import table_fit
        from core.private.reading import read_table
        from core.private.suggestions import suggest_schema
        from core.schema import Schema

        raw = read_table(data, name=name)
        suggested = suggest_schema(raw).schema
        fingerprint(raw.frame, b"key")
        declared = [column for column in seeds.SCHEMA.columns if column.name in raw.names]
        for columns in (suggested.columns, tuple(declared)):
            schema = Schema(columns) if columns else None
            if schema is not None and schema.modelled:
                table_fit(raw, schema)
                encode(raw, schema)
        return raw

    return read


def read_batches(name: str) -> Callable[[bytes], object]:
    """Looking at a table that passes through in batches, and coding it: before and after a charge.

    ``seeds.SCHEMA`` is declared: nothing is found out from rows.
    """

    def read(data: bytes) -> object:
        from core.private.streaming import StreamedBatches, open_table, survey
        from core.schema import Schema

        with TemporaryDirectory() as folder:
            (Path(folder) / name).write_bytes(data)
            table = open_table(folder)
            found = survey(table, b"key")
            declared = [column for column in seeds.SCHEMA.columns if column.name in table.names]
            schema = Schema(tuple(declared)) if declared else None
            if schema is not None and schema.modelled:
                batches = StreamedBatches(table, schema, found.rows)
                assert sum(batch.rows for batch in batches.read(schema.names, ())) == found.rows
        return table

    return read


def read_plan(data: bytes) -> object:
    from core.plan import parse_plan, read_plan_bytes

    plan = read_plan_bytes(data, "plan.toml")
    assert parse_plan(plan.to_toml()) == plan
    return plan


def forecast(data: bytes) -> object:
    from core.outlook import outlook_for
    from core.plan import read_plan_bytes

    return outlook_for(read_plan_bytes(data, "plan.toml"))


def read_codebook(data: bytes) -> object:
    from core.codebook import codebook_bytes
    from core.codebook import read_codebook as read

    schema = read(data)
    assert read(codebook_bytes(schema, "json")) == schema
    return schema


def read_published(data: bytes) -> object:
    from core.pumba.published import read_published as read

    return read(data)


def infer(data: bytes) -> object:
    import numpy as np

    from core.pumba.posterior import posterior
    from core.pumba.published import read_published as read
    from core.pumba.settings import Settings

    found = read(data)
    answers = [posterior(one, Settings(draws=100)) for one in found.analyses]
    for one in answers:
        assert np.isfinite(one.parameters.values).all(), "a draw that is no number"
    return answers


def open_project(data: bytes) -> object:
    from core.errors import LedgerError
    from pages.shared.saved import project_from

    try:
        plain = json.loads(data)
    except ValueError as error:
        raise LedgerError("damaged") from error
    return project_from(plain, "0" * 16, "local")


def verify(data: bytes) -> object:
    from core.bundle import verify as check

    return check(data)


def read_release(data: bytes) -> object:
    from core.pace.release import CovarianceRelease
    from core.pumba.release import StatisticsRelease
    from core.releases import TreeRelease

    faults = []
    for kind in (TreeRelease, StatisticsRelease, CovarianceRelease):
        try:
            return kind.from_bytes(data)
        except JustitiaError as error:
            faults.append(error)
    raise faults[0]


# -- damage ------------------------------------------------------------------------------------


def bytes_of(files: Callable[[], Sequence[bytes]]) -> Callable[[Random], bytes]:
    """One of the files with damaged bytes."""
    return lambda random: mutation.damaged(random.choice(files()), random)


def members_of(files: Callable[[], Sequence[bytes]]) -> Callable[[Random], bytes]:
    """One of the archives with a damaged member and right checksums."""

    def damage(random: Random) -> bytes:
        return mutation.rezipped(
            random.choice(files()), random, lambda _, blob, rng: mutation.damaged(blob, rng)
        )

    return damage


def toml_of(files: Callable[[], Sequence[bytes]]) -> Callable[[Random], bytes]:
    """Valid TOML in which some value is another one."""

    def damage(random: Random) -> bytes:
        import tomli_w

        plain = tomllib.loads(random.choice(files()).decode("utf-8-sig"))
        found = mutation.altered(plain, random)
        try:
            return tomli_w.dumps(found).encode()
        except (TypeError, ValueError, AttributeError):  # TOML knows no null
            return json.dumps(found, default=str)[:5000].encode()

    return damage


def json_of(plain: Callable[[], Sequence[Any]]) -> Callable[[Random], bytes]:
    """JSON in which some value is another one."""

    def damage(random: Random) -> bytes:
        return _dumped(mutation.altered(random.choice(plain()), random))

    return damage


def _dumped(plain: Any) -> bytes:
    try:
        return json.dumps(plain).encode()
    except ValueError:
        return json.dumps(plain, default=str, skipkeys=True).encode()


def table_cells(form: str) -> Callable[[Random], bytes]:
    """Well-formed tables of hostile cells."""

    def damage(random: Random) -> bytes:
        from tests.hostile import corpus

        return corpus.random_table(random, form)

    return damage


def published_values(random: Random) -> bytes:
    """Published statistics that are well formed and hardly possible."""
    plain = [blob for blob in seeds.published() if blob.lstrip()[:1] in b"[{"]
    return json_of(lambda: [json.loads(blob) for blob in plain])(random)


def lying_bundle(random: Random) -> bytes:
    """A bundle with one altered file and a manifest that agrees with it."""
    from core.bundle import bundle_bytes

    files = dict(seeds.derived().files)
    name = random.choice(sorted(files))
    blob = files[name]
    if name.endswith(".npz") and name != "posterior-draws.npz" and random.randrange(5):
        files[name] = mutation.damaged_header(blob, random)
    elif name.endswith(".json"):
        files[name] = _dumped(mutation.altered(json.loads(blob), random))
    elif name.endswith(".toml") and random.randrange(4):
        files[name] = toml_of(lambda: [blob])(random)
    else:
        files[name] = mutation.damaged(blob, random)
    return bundle_bytes(files, True)


def release_blob(random: Random) -> bytes:
    files = seeds.derived().files
    blobs = [blob for name, blob in sorted(files.items()) if name.endswith("release.npz")]
    blobs += [blob for name, blob in sorted(files.items()) if name.startswith("statistics-")]
    blob = random.choice(blobs)
    return (
        mutation.damaged_header(blob, random)
        if random.randrange(4)
        else mutation.damaged(blob, random)
    )


def manifest_of(random: Random) -> bytes:
    """A bundle whose manifest is altered."""
    members = mutation.unzipped(seeds.bundle())
    name = next(name for name in members if name.endswith("manifest.json"))
    members[name] = _dumped(mutation.altered(json.loads(members[name]), random))
    return mutation.zipped(members)


DOORS: tuple[Door, ...] = (
    Door("csv", read_rows("table.csv"), bytes_of(seeds.csv_files), True),
    Door("csv cells", read_rows("table.csv"), table_cells("csv"), False),
    Door("parquet", read_rows("table.parquet"), bytes_of(seeds.parquet_files), True),
    Door("parquet cells", read_rows("table.parquet"), table_cells("parquet"), False),
    Door("csv in batches", read_batches("table.csv"), bytes_of(seeds.csv_files), True),
    Door("parquet in batches", read_batches("t.parquet"), bytes_of(seeds.parquet_files), True),
    Door("excel", read_rows("table.xlsx"), bytes_of(seeds.workbooks), True),
    Door("excel members", read_rows("table.xlsx"), members_of(seeds.workbooks), True),
    Door("excel cells", read_rows("table.xlsx"), table_cells("xlsx"), False),
    Door("plan", read_plan, bytes_of(seeds.plans)),
    Door("plan values", read_plan, toml_of(seeds.plans)),
    Door("forecast", forecast, toml_of(seeds.plans)),
    Door("codebook", read_codebook, bytes_of(seeds.codebooks)),
    Door(
        "codebook values",
        read_codebook,
        json_of(lambda: [json.loads(blob) for blob in seeds.codebooks()[1::2]]),
    ),
    Door("published", read_published, bytes_of(seeds.published)),
    Door("published values", infer, published_values),
    Door("published rows", infer, bytes_of(seeds.published)),
    Door("project", open_project, json_of(seeds.projects)),
    Door("bundle", verify, bytes_of(lambda: [seeds.bundle()])),
    Door("bundle members", verify, members_of(lambda: [seeds.bundle()])),
    Door("bundle manifest", verify, manifest_of),
    Door("bundle lies", verify, lying_bundle),
    Door("release", read_release, release_blob),
)
