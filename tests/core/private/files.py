"""Files in memory, and how reading refuses them."""

import io

import openpyxl
import pyarrow.parquet as pq
import pytest

from core.errors import ReadingError
from core.private.reading import read_table


def cells(raw):
    return [list(raw.names), *raw.frame.to_numpy().tolist()]


def parquet(table):
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def excel(rows, **sheets):
    book = openpyxl.Workbook()
    book.active.title = "first"
    for row in rows:
        book.active.append(row)
    for title, more in sheets.items():
        sheet = book.create_sheet(title)
        for row in more:
            sheet.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def refused(data, words, error=ReadingError, **options):
    options.setdefault("name", "people.csv")
    with pytest.raises(error, match=words) as caught:
        read_table(data, **options)
    message = str(caught.value)
    assert message.startswith(options["name"])
    assert "\n" not in message
    return caught.value
