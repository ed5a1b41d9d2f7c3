"""Under a limit of the process's memory, everything works within it or refuses with a word; nothing dies."""

from __future__ import annotations

import subprocess
import sys

import pytest

from muhat.memory import check_memory, free_memory, memory_budget

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory of a process is limited this way on Linux")

ROWS = 12_000
CALLS = {
    "KernelMean": "mh.KernelMean().fit(X).mean_.norm()",
    "ShrunkKernelMean": "mh.ShrunkKernelMean().fit(X)",
    "SpectralKernelMean": "mh.SpectralKernelMean(mh.Gaussian(20.0), lam=1.0, tol=1e-2).fit(X)",
    "SpectralKernelMean, dense": "mh.SpectralKernelMean(solver='dense').fit(X)",
    "SpectralKernelMean, features": "mh.SpectralKernelMean(features=mh.Nystroem()).fit(X)",
    "KernelPCA": "mh.KernelPCA(2).fit(X)",
    "KernelCovariance": "mh.KernelCovariance(mean=mh.ShrunkKernelMean()).fit(X)",
    "mmd_test": "mh.mmd_test(X[:6000], X[6000:])",
    "hsic_test": "mh.hsic_test(X, X)",
}
WORKS = {"KernelMean", "ShrunkKernelMean", "SpectralKernelMean", "SpectralKernelMean, features"}

SCRIPT = """
import resource, sys
import numpy as np
import muhat as mh
X = np.random.default_rng(0).normal(size=({rows}, 3))
mh.ShrunkKernelMean().fit(X[:3000])  # threads and buffers of the libraries are there before the limit
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 700 * 2**20,) * 2)
try:
    {call}
    print("works")
except MemoryError as error:
    print("refuses:", error)
"""


@pytest.mark.parametrize("name", CALLS)
def test_works_or_refuses(name):
    script = SCRIPT.format(rows=ROWS, call=CALLS[name])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    if name in WORKS:
        assert done.stdout.startswith("works"), done.stdout
    else:
        assert done.stdout.startswith("refuses:")
        assert "would need" in done.stdout
        assert "use" in done.stdout


def test_the_budget_is_a_share_of_what_is_free():
    assert 0 < memory_budget(None) < free_memory()
    assert memory_budget(1e6) == 1e6
    check_memory(1e5, 1e6, "this", "do less")
    with pytest.raises(MemoryError, match=r"this would need 2 MB and 1 MB may be used; do less"):
        check_memory(2e6, 1e6, "this", "do less")
