"""Small tables, coded: what the tests of coding share."""

import io

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.private.coding import encode
from core.private.raw import RawTable, ReadingReport
from core.schema import Schema


def raw(columns_, decimal="."):
    return RawTable(pd.DataFrame(columns_), "people", ReadingReport("csv", decimal=decimal))


def texts(*cells):
    return pd.Series(cells, dtype="str")


def typed(*cells):
    return pd.Series(cells, dtype=object)


def codes(column, series, decimal="."):
    table = encode(raw({column.name: series}, decimal), Schema((column,)))
    return table.codes[column.name].tolist()


def labels(column, series, decimal="."):
    return [column.cells[code] for code in codes(column, series, decimal)]


def numbers(column, series, decimal="."):
    return (
        encode(raw({column.name: series}, decimal), Schema((column,))).numbers[column.name].tolist()
    )


def parquet(columns_):
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns_), buffer)
    return buffer.getvalue()


def excel(rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()
