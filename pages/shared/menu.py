"""The pages in the order of work: file, title, icon, and what each is for."""

from __future__ import annotations

STEPS = (
    ("start", "Start", ":material/home:", "Demo data, a table of your own, or a saved project."),
    ("data", "Data", ":material/table_chart:", "What each column may hold, and whose data it is."),
    ("roles", "Roles", ":material/balance:", "Who is protected from whom, and what that forbids."),
    ("budget", "Budget", ":material/tune:", "What the release may cost, and what it will buy."),
    ("tree", "Tree", ":material/account_tree:", "Release the tree and watch it grow."),
    ("synthetic", "Synthetic", ":material/dataset:", "Synthetic rows and the certificate, free."),
    (
        "posterior",
        "Posterior",
        ":material/show_chart:",
        "Intervals that carry the privacy noise, for your data or published numbers.",
    ),
    (
        "covariance",
        "Covariance",
        ":material/grid_on:",
        "A private covariance matrix, round by round.",
    ),
    (
        "audit",
        "Audit",
        ":material/fact_check:",
        "How good and how fair the synthetic rows are, and what of that may be published.",
    ),
    ("release", "Release", ":material/inventory_2:", "Sign and download the bundle."),
    ("learn", "Learn", ":material/school:", "Rule and noise on made-up people; costs nothing."),
    ("ledger", "Ledger", ":material/receipt_long:", "Every spend of this population."),
)
