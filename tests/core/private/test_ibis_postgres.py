"""A table that stays in PostgreSQL gives the numbers of the same table in memory."""

import datetime
import os
import random
from decimal import Decimal
from urllib.parse import urlencode, urlsplit

import pyarrow as pa
import pytest

from core.errors import ReadingError
from core.private.ibis_connection import open_database
from core.private.source import Primitive
from core.releases import Unit
from core.schema import Column, Schema
from tests.core.private.engines import assert_same_answers, in_memory
from tests.core.private.ledgers import POSTGRES

pytestmark = pytest.mark.skipif(
    POSTGRES not in os.environ, reason=f"needs a PostgreSQL server: set {POSTGRES} to its URL"
)

TYPES = {
    "city": ("text", pa.string()),
    "sick": ("boolean", pa.bool_()),
    "pay": ("double precision", pa.float64()),
    "cost": ("numeric(9,2)", pa.decimal128(9, 2)),
    "moment": ("timestamp", pa.timestamp("us")),
}
START = datetime.datetime(2024, 1, 1, 23, 59, 59, 999999)
CELLS = {
    "city": ["Oslo", " Oslo", "Oslo\u2003", "oslo", "Rome\n", "Ro me", None, "", "?", "O'", "\\"],
    "sick": [True, False, None],
    "pay": [*(0.1 * n for n in range(-30, 130)), *map(float, ("nan", "inf", "-inf", "-0")), None],
    "cost": [*(Decimal(n) / 100 for n in range(-300, 1300, 7)), None],
    "moment": [*(START + datetime.timedelta(hours=31 * n) for n in range(-50, 300)), None],
}
SCHEMA = Schema(
    (
        Column(
            "city", "categorical", categories=("Oslo", "Rome", "O'", "\\"), missing_markers=("?",)
        ),
        Column("sick", "boolean", categories=("no", "yes")),
        Column("pay", "real", lower=0.1, upper=9.3, bins=7, out_of_domain="other"),
        Column("cost", "real", lower=0, upper=10, bins=7, missing_markers=("-3", "99")),
        Column("moment", "date", lower="2024-01-01", upper="2024-12-31"),
    )
)


@pytest.fixture
def people():
    """The address of a table of 300 rows, and the same rows."""
    import psycopg

    generator = random.Random(0)
    rows = {name: generator.choices(cells, k=300) for name, cells in CELLS.items()}
    url = urlsplit(os.environ[POSTGRES])._replace(scheme="postgresql").geturl()
    name = f"people_{os.getpid()}"
    declared = ", ".join(f"{column} {kind}" for column, (kind, _) in TYPES.items())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} ({declared})")
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s)",
                list(zip(*rows.values(), strict=True)),
            )
        table = pa.table({c: pa.array(cells, TYPES[c][1]) for c, cells in rows.items()})
        yield url.partition("?")[0] + "?" + urlencode({"table": name, "version": "1"}), table
        connection.execute(f"DROP TABLE {name}")


@pytest.mark.slow
def test_postgres_gives_the_numbers_of_memory(people):
    address, table = people
    found = open_database(address)
    source = found.source(SCHEMA, Unit())
    assert source.serves == {Primitive.COUNTS, Primitive.MOMENTS}
    assert_same_answers(source, in_memory(table, SCHEMA))
    found.table.get_backend().disconnect()


def test_a_wrong_password_is_not_quoted(people):
    address, _ = people
    password = urlsplit(address).password
    with pytest.raises(ReadingError, match="no connection to the database") as caught:
        open_database(address.replace(password, "hunter2"))
    assert "hunter2" not in str(caught.value)
