"""The same plan, the same seed: the same releases from memory, from DuckDB and from Spark."""

import importlib.util
import shutil
from urllib.parse import urlencode

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from core import demo
from core.attachment import attach_simulated, open_for
from core.measuring import identities_for, measure
from core.plan import parse_plan
from core.starting import demo_plan

ANALYSES = """
[[posterior]]
name = "income"
kind = "mean"
outcome = "monthly_income"
by = "origin"
rho = "1/20"

[[posterior]]
name = "slope"
kind = "regression"
outcome = "loan_amount"
predictors = ["savings"]
robust = true
rho = "1/20"

[[posterior]]
name = "purposes"
kind = "table"
variables = ["origin", "purpose"]
rho = "1/20"

[covariance]
columns = ["age", "applied_on", "debt_ratio", "loan_amount", "monthly_income", "savings"]
rho = "1/20"
"""


def people(rows):
    """The embedded demo as a typed table, some cells of which lack or lie outside."""
    import io

    options = pyarrow.csv.ConvertOptions(
        strings_can_be_null=True,
        true_values=["yes"],
        false_values=["no"],
        null_values=[""],
        column_types={
            "age": pa.int16(),
            "existing_customer": pa.bool_(),
            "monthly_income": pa.float64(),
            "debt_ratio": pa.decimal128(6, 3),
        },
    )
    return pyarrow.csv.read_csv(
        io.BytesIO(demo.csv_bytes("lending", rows=rows)), convert_options=options
    )


def plan_for(rows):
    return parse_plan(demo_plan("lending", rows=rows).to_toml() + ANALYSES)


def releases(plan, data):
    """Every release's bytes, under one seed."""
    attached = attach_simulated(plan, open_for(plan, data), 7, allow_real=True)
    measured = measure(attached, plan, identities_for(plan, attached))
    return [one.release.to_bytes() for one in measured]


def address(scheme_and_path, **settings):
    return f"{scheme_and_path}?{urlencode({'table': 'people', 'version': '1', **settings})}"


def test_releases_from_duckdb_are_those_from_memory(tmp_path):
    table, plan = people(4000), plan_for(4000)
    pq.write_table(table, tmp_path / "people.parquet")
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    wanted = releases(plan, tmp_path / "people.parquet")
    assert len(wanted) == 5
    assert releases(plan, address(f"duckdb://{tmp_path}/people.duckdb")) == wanted


# -- Spark ------------------------------------------------------------------------------------

SPARK = importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None


@pytest.fixture
def spark():
    """A session on two threads of this machine; nothing of it listens beyond."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("default")  # pyspark's own, about pandas and sockets
@pytest.mark.skipif(not SPARK, reason="no Java 17 or 21, or no PySpark (requirements-spark.lock)")
def test_releases_from_spark_are_those_from_memory(spark, tmp_path):
    rows = 1_000_000
    table, plan = people(rows), plan_for(rows)
    pq.write_table(table, tmp_path / "people.parquet")
    spark.read.parquet(str(tmp_path / "people.parquet")).createOrReplaceTempView("people")
    wanted = releases(plan, tmp_path / "people.parquet")
    assert releases(plan, address("pyspark:///")) == wanted
