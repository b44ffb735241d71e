"""Which tables a ledger has seen: fingerprints that stay in it, and the random ids that go out."""

from __future__ import annotations

import secrets

from sqlalchemy import insert, select, update

from core.private.database import Clash, Database
from core.private.ledger_tables import existing_population, population_rows, table_rows


class KnownTables:
    """The part of a ledger that recognises tables; no accounts, and in no chain."""

    database: Database

    def table_id(self, population: str, fingerprint: str, *, owner: str = "local") -> str:
        """A random public id for a table, the same whenever it is attached to this population.

        The fingerprint itself stays in the ledger.  It reminds of a table that was attached
        before; it does not stop anybody who changes a cell.
        """
        try:
            return self._table_id(population, fingerprint, owner)
        except Clash:  # another process attached the same table at the same moment
            return self._table_id(population, fingerprint, owner)

    def knows_tables(self) -> bool:
        """Whether any table was ever attached, so that a secret must exist."""
        with self.database.reading() as connection:
            return connection.execute(select(table_rows.c.table_id).limit(1)).first() is not None

    def seen_in(self, fingerprint: str, owner: str = "local") -> tuple[str, ...]:
        """Names of this owner's populations to which a table was attached before."""
        query = (
            select(population_rows.c.name)
            .join(table_rows, table_rows.c.population_id == population_rows.c.id)
            .where(table_rows.c.fingerprint == fingerprint, population_rows.c.owner == owner)
            .order_by(population_rows.c.name)
        )
        with self.database.reading() as connection:
            return tuple(connection.execute(query).scalars())

    def renew_mark(self, population: str, earlier: str, mark: str, *, owner: str = "local") -> None:
        """Recognise a table by another fingerprint from here on; its id stays."""
        with self.database.writing() as connection:
            row = existing_population(connection, population, owner)
            mine = table_rows.c.population_id == row.id
            known = select(table_rows.c.table_id).where(mine, table_rows.c.fingerprint == mark)
            if connection.execute(known).first() is None:
                connection.execute(
                    update(table_rows)
                    .where(mine, table_rows.c.fingerprint == earlier)
                    .values(fingerprint=mark)
                )

    def _table_id(self, population: str, fingerprint: str, owner: str) -> str:
        with self.database.writing() as connection:
            row = existing_population(connection, population, owner)
            seen = connection.execute(
                select(table_rows.c.table_id).where(
                    table_rows.c.population_id == row.id, table_rows.c.fingerprint == fingerprint
                )
            ).scalar_one_or_none()
            if seen is not None:
                return str(seen)
            fresh = secrets.token_hex(8)
            connection.execute(
                insert(table_rows).values(
                    population_id=row.id, fingerprint=fingerprint, table_id=fresh
                )
            )
            return fresh
