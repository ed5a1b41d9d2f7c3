"""BLAS is held to one thread while asked for, and given back afterwards, whoever else asks."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from muhat.linalg.resources import one_blas_thread


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip(f"BLAS cannot be set to two threads here, it has {blas_threads()}")
        yield


def test_one_thread_inside():
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_the_last_gives_back_in_any_order():
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == {2}


def test_errors_give_back():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert blas_threads() == {2}


def test_many_users():
    def work(_):
        with one_blas_thread():
            return np.ones((50, 50)) @ np.ones((50, 50))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(100)))
    assert blas_threads() == {2}
