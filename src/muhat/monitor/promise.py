r"""What a reference can promise: refusals, and the allowance on thresholds for the error of the reference.

The promise is a mean over references and streams: of all references of n rows from one distribution, each with its own
thresholds, streams of that distribution run for ``run_length`` rows on average until a false alarm. A single reference
may keep more or less of it, and the fewer rows it has, the more so.

Simulated streams consist of rows of the reference, and do not know the values beyond them. What that costs is made up
for by a small allowance on the thresholds, and promises with which it would be much are refused.
"""

from __future__ import annotations

from math import ceil, log, sqrt

ROWS_OF_ONE = 10.0
"""A promise of R rows needs 10 √R independent reference rows."""

FEWEST_ROWS = 20
"""Independent rows that a reference in the order of time needs."""


def allowance(run_length: float, predicted: bool) -> float:
    """What is added to thresholds: 0.05 log(R/20) for a promise of R rows, and 0.15 where rows are residuals.

    Its exponential makes run lengths longer. Measured, not derived: without it, references of 50 to 1,000 normal,
    heavy-tailed and real rows kept about all of promises of 100 rows and 80 per cent of promises of 1,000, and the
    error of an autoregression cost another tenth or more.
    """
    return max(0.05 * log(run_length / 20.0), 0.0) + (0.15 if predicted else 0.0)


def most_promised(rows: int, time: float) -> int:
    """The longest run length that reference rows can promise, of which ``time`` are worth an independent one.

    n independent rows promise n²/100 rows. Where rows depend on each other for longer than an autoregression explains,
    rows that are worth n independent ones promise at most n: beyond that about half of the promise was kept on hourly
    weather.
    """
    independent = rows / time
    most = (independent / ROWS_OF_ONE) ** 2
    return max(int(most if time <= 1.0 else min(most, independent)), 2)


def check_promise(run_length: float, rows: int, time: float) -> None:
    """Refuse what so few rows cannot promise.

    Parameters
    ----------
    run_length : float
    rows : int
        Reference rows.
    time : float
        Autocorrelation time: how many rows are worth an independent one.
    """
    if time > 1.0 and rows / time < FEWEST_ROWS:
        raise ValueError(
            f"run_length={run_length:,.0f} cannot be promised from {rows:,} reference rows, which depend on each other "
            f"for about {time:,.0f} rows; pass {ceil(FEWEST_ROWS * time):,} rows or more, or block_length=1 if their "
            f"order means nothing"
        )
    most = most_promised(rows, time)
    if run_length > most:
        worth = f" that are worth {rows / time:,.0f} independent ones" if time > 1.0 else ""
        order = ", or block_length=1 if the order of the rows means nothing" if time > 1.0 else ""
        needed = ROWS_OF_ONE * sqrt(run_length)
        enough = ceil(needed if time <= 1.0 else time * max(needed, run_length))
        raise ValueError(
            f"run_length={run_length:,.0f} cannot be promised from {rows:,} reference rows{worth}; pass {enough:,} "
            f"rows or more, or run_length={most:,} at most{order}"
        )
