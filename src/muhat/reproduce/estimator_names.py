"""How the estimators are called and coloured, the same in all pictures and tables of the report."""

COLOURS = {
    "KME": "#6b7280",
    "S": "#2563eb",
    "F_theorem4": "#d97706",
    "F_deletion": "#059669",
    "oracle": "#a855f7",
}
"""One colour an estimator, the same in all pictures; each is legible on white and on black."""


LABELS = {
    "KME": "KME",
    "S": "S-KMSE",
    "F_theorem4": "F-KMSE (Theorem 4)",
    "F_deletion": "F-KMSE (deletion)",
    "oracle": "oracle (Theorem 1)",
}
