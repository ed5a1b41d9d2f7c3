"""Memory: within a limit, or refused with a word. Threads: BLAS is held to one, and given back, whoever asks."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from muhat.linalg import resources
from muhat.linalg.resources import check_memory, free_memory, left_by_control_groups, memory_budget, one_blas_thread

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory of a process is limited this way on Linux")

ROWS = 12_000
WORKS = {
    "KernelMean": "mh.KernelMean().fit(X).mean_.norm()",
    "ShrunkKernelMean": "mh.ShrunkKernelMean().fit(X)",
    "SpectralKernelMean": "mh.SpectralKernelMean(mh.Gaussian(20.0), lam=1.0, tol=1e-2).fit(X)",
    "AdaptiveKernelMean": "mh.AdaptiveKernelMean(mh.Gaussian(20.0), tol=1e-2).fit(X)",
    "SpectralKernelMean, few features": "mh.SpectralKernelMean(mh.Polynomial(2)).fit(X)",
    "SpectralKernelMean of a sketch": "mh.SpectralKernelMean().estimate("
    "mh.MeanSketch(mh.Nystroem().fit(X), second_moment=True, reservoir_size=1000).update(X).gram())",
    "KernelPCA, pre-images": "(lambda pca: pca.inverse_transform(pca.transform(X)))"
    "(mh.KernelPCA(2, mh.Gaussian(20.0), pre_image='fixed-point').fit(X[:3000]))",
    "MatchedGaussianMixture": "mh.MatchedGaussianMixture(2, n_init=1, max_iter=2, random_state=0).fit(X)",
    "DistributionKernel": "mh.DistributionKernel().fit_transform(np.split(X, 100))",
    "mmd_test": "mh.mmd_test(X[:6000], X[6000:], n_resamples=9)",
    "hsic_test": "mh.hsic_test(X, X, n_resamples=9)",
}
REFUSES = {
    "SpectralKernelMean, dense": "mh.SpectralKernelMean(solver='dense').fit(X)",
    "AdaptiveKernelMean, dense": "mh.AdaptiveKernelMean(solver='dense').fit(X)",
    "RobustKernelMean": "mh.RobustKernelMean().fit(X)",
    "ConstrainedKernelMean": "mh.ConstrainedKernelMean().fit(X)",
    "KernelPCA": "mh.KernelPCA(2).fit(X)",
    "KernelCovariance": "mh.KernelCovariance(mean=mh.ShrunkKernelMean()).fit(X)",
    "DistributionKernel, many bags": "mh.DistributionKernel().fit(list(X[:, None]))",
    "mmd_test, one kernel": "mh.mmd_test(X[:6000], X[6000:], mh.Gaussian())",
    "hsic_test, one kernel": "mh.hsic_test(X, X, mh.Gaussian())",
}

SCRIPT = """
import json, resource, sys, warnings
import numpy as np
import muhat as mh
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=({rows}, 3))
mh.ShrunkKernelMean().fit(X[:3000])  # threads and buffers of the libraries are there before the limit
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 700 * 2**20,) * 2)
outcomes = dict()
for name, call in {calls}.items():
    try:
        eval(call)
        outcomes[name] = "works"
    except MemoryError as error:
        outcomes[name] = str(error)
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def outcomes():
    """What came of all calls, one after the other, in one process under the limit."""
    script = SCRIPT.format(rows=ROWS, calls={**WORKS, **REFUSES})
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@on_linux
@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS)
def test_works_within_the_limit(name, outcomes):
    assert outcomes[name] == "works"


@on_linux
@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSES)
def test_refuses_with_bytes_and_a_remedy(name, outcomes):
    assert re.search(r"would need [\d.]+ [GM]B and [\d.]+ MB may be used; use ", outcomes[name])


def test_the_budget_is_a_share_of_what_is_free():
    assert 0 < memory_budget(None) < free_memory()
    assert memory_budget(1e6) == 1e6
    check_memory(1e5, 1e6, "this", "do less")
    with pytest.raises(MemoryError, match=r"this would need 2 MB and 1 MB may be used; do less"):
        check_memory(2e6, 1e6, "this", "do less")


def control_group(folder, limit, used, inactive):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {inactive}\nactive_file 3\n")


def test_control_groups_limit_the_memory(tmp_path):
    """The tightest of a group and those above it counts, less what it uses but for files that can be dropped."""
    membership, top = tmp_path / "cgroup", tmp_path / "mounted"
    membership.write_text("3:cpu,cpuacct:/x\n0::/job/step\n")
    assert left_by_control_groups(membership, top) == np.inf
    control_group(top / "job" / "step", "max", 50, 0)
    assert left_by_control_groups(membership, top) == np.inf
    control_group(top / "job", 1000, 400, 100)
    assert left_by_control_groups(membership, top) == 700
    control_group(top / "job" / "step", 500, 300, 50)
    assert left_by_control_groups(membership, top) == 250
    control_group(top, 500, 600, 0)
    assert left_by_control_groups(membership, top) == 0, "more is used than the limit allows"
    membership.write_text("0::/elsewhere\n")
    control_group(top, 900, 100, 0)
    assert left_by_control_groups(membership, top) == 800, "a container sees its own group at the top"
    assert left_by_control_groups(tmp_path / "none", top) == np.inf


@on_linux
def test_free_memory_heeds_control_groups(monkeypatch):
    monkeypatch.setattr(resources, "left_by_control_groups", lambda membership, mounted: 12345.0)
    assert free_memory() == 12345.0


# ---------------------------------------------------------------- threads


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(resources, "_controller", None)  # another test may have loaded one more BLAS since
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip(f"BLAS cannot be set to two threads here, it has {blas_threads()}")
        yield


@pytest.mark.usefixtures("two_threads")
def test_one_thread_inside():
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_the_last_gives_back_in_any_order():
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_errors_give_back():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_many_users():
    def work(_):
        with one_blas_thread():
            return np.ones((50, 50)) @ np.ones((50, 50))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(100)))
    assert blas_threads() == {2}


@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit():
    script = Path(__file__).parents[2] / "tools" / "attacks" / "threads.py"
    digests_of_a_process = runpy.run_path(str(script))["digests_of_a_process"]
    assert digests_of_a_process(1) == digests_of_a_process(2)
