"""XML of a workbook, looked over before a library builds trees of it."""

from __future__ import annotations

import zipfile
from xml.parsers import expat

from core.archives import DAMAGE
from core.errors import ReadingError

#: Far deeper than any part of a workbook; trees of such depth take time beyond all measure.
_DEEPEST = 100
_PIECE = 1 << 16


def refuse_tricks(archive: zipfile.ZipFile, name: str) -> None:
    """Refuse document types, with whose entities a text can grow without end, and deep nesting.

    Raises
    ------
    ReadingError
        Naming the kind of trick, or a part that is no XML.
    """
    for item in archive.infolist():
        if item.filename.endswith((".xml", ".rels")):
            try:
                with archive.open(item) as stream:
                    parser = _parser(name)
                    while piece := stream.read(_PIECE):
                        parser.Parse(piece, False)
                    parser.Parse(b"", True)
            except (expat.ExpatError, *DAMAGE):
                # Their words may quote cells.
                raise ReadingError(f"{name}: the workbook is damaged") from None


def _parser(name: str) -> expat.XMLParserType:
    depth = 0

    def opened(tag: str, attributes: object) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise ReadingError(f"{name}: the workbook's XML is nested deeper than any sheet's")

    def closed(tag: str) -> None:
        nonlocal depth
        depth -= 1

    def declared(*arguments: object) -> None:
        raise ReadingError(f"{name}: the workbook declares a document type, which no sheet needs")

    parser = expat.ParserCreate()
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.StartDoctypeDeclHandler = declared
    return parser
