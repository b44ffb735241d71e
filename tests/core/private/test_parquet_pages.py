"""Sizes of pages are those that were written."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from core.private.parquet_pages import Pages, unpacked_pages


def test_all_pages_count_and_each_column_has_its_largest():
    fields = [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int32(), nullable=False)]
    schema, buffer = pa.schema(fields), io.BytesIO()
    with pq.ParquetWriter(buffer, schema, use_dictionary=False, compression="zstd") as writer:
        for rows in (10, 1000, 20):  # one page a column in each group: the largest is not the last
            writer.write_table(pa.table([range(rows), range(rows)], schema=schema))
    assert unpacked_pages(buffer.getvalue()) == Pages(1030 * (8 + 4), (8000, 4000))
