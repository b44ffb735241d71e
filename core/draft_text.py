"""The text of a first plan: its settings, and comments that show everything else one may say.

A TOML writer keeps no comments, so the sections are written one by one with comments around them.
"""

from __future__ import annotations

from typing import Any

from core.kinds import LABELLED_KINDS, Kind, OutOfDomain
from core.plan import Plan

_HEADING = """\
# A plan says everything that you chose; nothing in it comes from a row unless it says so.
# 1. Check every column below: kind, categories or bounds, missing rule.  Bounds and categories
#    must be public knowledge, fixed before anybody looks at the data.
# 2. Give each column a role: protected, outcome, admissible, inadmissible, ignore.
# 3. Choose a price (tree.rho) and name the population.
# Then: python -m core check PLAN --data FILE             (does it fit the file? spends nothing)
#       python -m core run PLAN --data FILE --out FOLDER  (charges, measures, writes)
"""

_SUGGESTED = """\
# A line "data_dependent = true" says that a declaration was read off the values.  Once you have
# replaced everything in that declaration by public knowledge, the line may be deleted.
"""

_POPULATION = """\
# expected_rows = 10000              # a public guess, for forecasts only
# unit_person_column = "patient_id"  # if a person may have several rows: the column that says who;
#                                    # unit_rows says how many rows of a person count
"""

_ROLES = """\
# Each column has one role, and each role one line.  For example:
# protected = ["sex"]
# outcome = ["hired"]
# admissible = ["field"]
# inadmissible = ["age", "height", "started"]
# ignore = ["patient_id"]
# proxies = ["age"]                  # inadmissible ones that give the protected column away
"""

#: One example of each kind; TOML once the comment signs are off.
EXAMPLES = """\
[[columns]]
name = "field"
kind = "categorical"
categories = ["engineering", "health", "other"]
other_label = "other"                # where a label outside the list goes
missing_markers = ["?", "n/a"]       # texts that mean missing

[[columns]]
name = "grade"
kind = "ordinal"                     # as categorical, in this order
categories = ["low", "middle", "high"]

[[columns]]
name = "hired"
kind = "boolean"
categories = ["no", "yes"]           # no first
other_label = "no"                   # other_label and missing like this: exactly two cells
missing = "constant"
missing_constant = "no"

[[columns]]
name = "age"
kind = "integer"
lower = 0
upper = 120
bins = 12                            # or edges = [0, 18, 30, 65, 120]

[[columns]]
name = "height"
kind = "real"
lower = 0.5
upper = 2.5
bins = 20
decimals = 2

[[columns]]
name = "started"
kind = "date"
lower = "2000-01-01"                 # bounds are written like this, whatever the file's form
upper = "2029-12-31"
unit = "quarter"                     # day, week, month, quarter, year
date_format = "%d.%m.%Y"             # how the file writes 31.12.2024

[[columns]]
name = "patient_id"
kind = "identifier"                  # left out of the release; so is text
reason = "a running number"

[[columns]]
name = "remark"
kind = "text"
reason = "free text"
"""


def draft_text(plan: Plan) -> str:
    """A plan as commented TOML; parsing it gives the plan back."""
    import tomli_w

    plain = plan.to_dict()
    columns = [_without_defaults(column) for column in plain.pop("columns")]
    after = {"population": _POPULATION, "roles": _ROLES}
    parts = [_HEADING]
    if any(column.get("data_dependent") for column in columns):
        parts.append(_SUGGESTED)
    parts += [
        tomli_w.dumps({section: settings}) + after.get(section, "")
        for section, settings in plain.items()
    ]
    parts.append("# How columns are declared, one example a kind:\n#\n" + commented(EXAMPLES))
    parts += ["[[columns]]\n" + tomli_w.dumps(column) for column in columns]
    return "\n".join(parts)


def commented(text: str) -> str:
    """Each line behind a comment sign."""
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())


def _without_defaults(column: dict[str, Any]) -> dict[str, Any]:
    """A column without the rule that its kind has anyway, so that the kind can be changed."""
    labelled = Kind(column["kind"]) in LABELLED_KINDS
    usual = OutOfDomain.OTHER if labelled else OutOfDomain.CLIP
    return {k: v for k, v in column.items() if not (k == "out_of_domain" and v == usual.value)}
