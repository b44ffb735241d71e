"""The small family of errors that a person may see.

Every message names the file, column or setting, the *kind* of the offending value (never a
confidential value) and the way out.  ``exit_code`` is what the command line returns.
"""

from __future__ import annotations

from core.visible import visible

#: Longer messages are cut: names in them may come from a stranger's file.
LONGEST = 2000


class JustitiaError(Exception):
    """Base of all errors that are meant for a user; nothing was spent unless it says so."""

    exit_code = 2

    def __str__(self) -> str:
        """The message in one bounded line, without characters that hide or command."""
        text = super().__str__()
        return visible(text) if len(text) <= LONGEST else f"{visible(text[:LONGEST])} … (shortened)"


class SchemaError(JustitiaError):
    """A declaration about a column is missing, contradictory or out of range."""


class ReadingError(JustitiaError):
    """A file cannot be read as the table, codebook or plan that it should be."""


class SourceError(ReadingError):
    """A source cannot be read (any more) as it was when it was attached.

    The message names files and columns and holds no value, so that it may stand in a ledger.
    """


class RolesError(JustitiaError):
    """Roles or constraints do not fit the schema."""


class InfeasibleConstraint(RolesError):
    """No graph can satisfy the declared constraints (for example one column both S and O)."""


class PlanError(JustitiaError):
    """A plan names something unknown or asks for the impossible."""


class BudgetError(JustitiaError):
    """A budget is not a positive finite number, or its parts do not fit together."""


class BudgetExceeded(JustitiaError):
    """The ledger or a grant refuses: the charge would pass the cap.  The data were not touched."""

    exit_code = 3


class LedgerError(JustitiaError):
    """The ledger or store cannot do what was asked (unknown population, clash, no connection)."""


class UnknownProject(LedgerError):
    """An owner has no project of that id; nothing is told about other owners."""


class ReleaseError(JustitiaError):
    """Budget was spent and no result exists; the message says how to go on."""

    exit_code = 4


class SimulationError(JustitiaError):
    """Seeded noise was asked for where real data are attached, or the other way round."""


class BundleError(JustitiaError):
    """A bundle's hashes, statement or contents do not agree with each other."""


class EstimationError(JustitiaError):
    """An estimator cannot work with the release that it was given."""


class StatisticError(EstimationError):
    """A published statistic, its noise or its bounds cannot be what they are said to be."""


class Cancelled(JustitiaError):
    """The person pressed cancel; what had been measured is kept as a partial release."""

    exit_code = 4
