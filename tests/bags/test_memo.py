"""Results are recalled for equal content, never for changed content, and in bounded memory."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import muhat as mh
from muhat.bags.memo import Memo, content_key


def kernel_function(X, Y):
    return X @ Y.T


@dataclass(frozen=True)
class Holder(mh.Gaussian):
    content: object = None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (mh.Gaussian(2.0), mh.Gaussian(2.0)),
        (mh.Gaussian() + mh.Linear(), mh.Gaussian() + mh.Linear()),
        (mh.ShrunkKernelMean(shrinkage=0.5), mh.ShrunkKernelMean(shrinkage=0.5)),
        (mh.SpectralKernelMean(), mh.SpectralKernelMean()),
        (mh.as_kernel(kernel_function), mh.as_kernel(kernel_function)),
        (mh.as_kernel(RBF(2.0)), mh.as_kernel(RBF(2.0))),
        (mh.as_kernel(RBF(np.array([1.0, 2.0]))), mh.as_kernel(RBF(np.array([1.0, 2.0])))),
        (None, None),
    ],
)
def test_equal_content_has_one_key(one, other):
    assert content_key(one) is not None
    assert content_key(one) == content_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (mh.Gaussian(2.0), mh.Gaussian(2.1)),
        (mh.Gaussian(2.0), mh.Laplace(2.0)),
        (mh.Gaussian(2.0), mh.Gaussian("median")),
        (mh.Gaussian() + mh.Linear(), mh.Linear() + mh.Gaussian()),
        (mh.ShrunkKernelMean(), mh.ShrunkKernelMean(shrinkage=0.5)),
        (mh.SpectralKernelMean(), mh.SpectralKernelMean(filter=mh.TruncatedSVD())),
        (mh.as_kernel(kernel_function), mh.as_kernel(lambda X, Y: kernel_function(X, Y))),
        (mh.ShrunkKernelMean(), None),
    ],
)
def test_other_content_has_another_key(one, other):
    assert content_key(one) != content_key(other)


def test_a_changed_kernel_of_scikit_learn_has_another_key():
    kernel = RBF(1.0)
    before = content_key(mh.as_kernel(kernel))
    kernel.length_scale = 2.0
    assert content_key(mh.as_kernel(kernel)) != before


def test_what_may_change_unseen_has_no_key():
    assert content_key(Holder(1.0, content=object())) is None
    assert content_key(Holder(1.0, content={"a": 1})) is None


def test_recall():
    memo, calls = Memo(10_000), []

    def compute():
        calls.append(1)
        return np.arange(3.0), "text"

    first, again = memo.recall("a", compute), memo.recall("a", compute)
    assert first is again
    assert len(calls) == 1
    with pytest.raises(ValueError, match="read-only"):
        first[0][0] = 7.0
    memo.recall(None, compute)
    memo.recall(None, compute)
    assert len(calls) == 3
    memo.clear()
    memo.recall("a", compute)
    assert len(calls) == 4


def test_memory_is_bounded_and_the_least_recent_leaves():
    memo = Memo(3 * 9_500)
    for key in "abc":
        memo.recall(key, lambda: np.zeros(1000))
    memo.recall("a", lambda: pytest.fail("a was kept"))
    memo.recall("d", lambda: np.zeros(1000))
    memo.recall("a", lambda: pytest.fail("a was used after b"))
    called = []
    memo.recall("b", lambda: called.append(1))
    assert called
    memo.recall("huge", lambda: np.zeros(100_000))
    assert memo._bytes <= memo.max_bytes


def test_failures_are_not_kept():
    memo = Memo(10_000)
    with pytest.raises(ZeroDivisionError):
        memo.recall("a", lambda: 1 / 0)
    assert memo.recall("a", lambda: 5) == 5


def test_threads():
    memo = Memo(50_000)

    def work(i):
        return memo.recall(i % 7, lambda: np.full(500, float(i % 7)))[0] == i % 7

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(500)))
    assert memo._bytes <= memo.max_bytes


def test_arrays_inside_of_a_fitted_object_count():
    class Fitted:
        def __init__(self):
            self.landmarks = np.zeros(1000)

    memo = Memo(max_bytes=10_000)
    memo.recall("fit", Fitted)
    memo.recall("pair", lambda: (Fitted(), np.zeros(10)))
    with pytest.raises(ZeroDivisionError):  # the first had to leave
        memo.recall("fit", lambda: 1 / 0)
