"""Time of one core for a mean whose weights sum to one, by the number of rows; processor time, as others may be busy.

python benchmarks/constrained.py
"""

from __future__ import annotations

from time import process_time

from threadpoolctl import threadpool_limits

import muhat as mh
from muhat.means.constrained import ConstrainedKernelMean


def seconds(n: int, nonnegative: bool) -> float:
    """Processor seconds of one fit to rows of one of the paper's mixtures."""
    X = mh.paper_mixture(5, random_state=0).sample(n, random_state=0)
    with threadpool_limits(limits=1):
        start = process_time()
        ConstrainedKernelMean(nonnegative=nonnegative).fit(X)
        return process_time() - start


if __name__ == "__main__":
    seconds(100, True)
    for n in (500, 1000, 2000):
        times = [seconds(n, nonnegative) for nonnegative in (True, False)]
        print("{:,} rows: {:.1f} seconds, {:.1f} where weights may be negative".format(n, *times), flush=True)
