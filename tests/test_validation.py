"""Checks of input that every estimator shares."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tables import sample

import muhat as mh
from muhat._support.validation import GRAM_TOLERANCE, check_gram


def gram(n=8, d=3):
    return mh.Gaussian(2.0)(sample(n, d, seed=1))


def with_asymmetry(K, size, at=(0, -1)):
    K = K.copy()
    K[at] += size
    return K


def test_a_gram_matrix_is_returned_as_it_is():
    K = gram()
    assert check_gram(K) is K
    assert_array_equal(check_gram(np.zeros((3, 3))), np.zeros((3, 3)))
    assert_array_equal(check_gram(K.tolist()), K)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(("n", "at"), [(8, (0, -1)), (8, (3, 4)), (300, (0, -1)), (300, (-1, 2)), (300, (255, 256))])
def test_asymmetry_beyond_rounding_is_refused_wherever_it_is(n, at, scale):
    K = scale * gram(n)
    rounded = check_gram(with_asymmetry(K, 0.5 * GRAM_TOLERANCE * scale, at))
    assert_array_equal(rounded, rounded.T)
    with pytest.raises(ValueError, match="K is not symmetric"):
        check_gram(with_asymmetry(K, 2.0 * GRAM_TOLERANCE * scale, at))


def test_rounding_is_that_of_the_largest_entry():
    """Off the diagonal an entry may be large where the diagonal vanishes: the test of definiteness judges those."""
    K = np.array([[0.0, 1.0], [1.0 + 0.5 * GRAM_TOLERANCE, 0.0]])
    assert_array_equal(check_gram(K, definite=False), check_gram(K, definite=False).T)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_gram(K)
    with pytest.raises(ValueError, match="not symmetric"):
        check_gram(np.array([[0.0, 1.0], [1.0 + 2.0 * GRAM_TOLERANCE, 0.0]]), definite=False)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_negative_eigenvalues_beyond_rounding_are_refused(scale):
    K = gram()
    values, U = np.linalg.eigh(K)
    for share, refused in ((0.5, False), (2.0, True)):
        changed = values.copy()
        changed[0] = -share * GRAM_TOLERANCE * np.trace(K)
        indefinite = scale * (U * changed) @ U.T
        indefinite = 0.5 * (indefinite + indefinite.T)
        if refused:
            with pytest.raises(ValueError, match="not positive semi-definite"):
                check_gram(indefinite)
            assert check_gram(indefinite, definite=False) is indefinite
        else:
            assert check_gram(indefinite) is indefinite
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_gram(-scale * K)


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 2, 2)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="needs a square Gram matrix"):
        check_gram(np.ones(shape))


def test_overflow_is_refused():
    with pytest.raises(ValueError, match="whose sums overflow"):
        check_gram(1e308 * np.eye(3))


ROWS = sample(24, 2, seed=0)
BAGS = np.split(ROWS, 12)


def masked(values):
    return np.ma.masked_array(values, mask=np.arange(len(values)) == 1)


MASKED = {
    "weights": lambda: mh.KernelMean().fit(ROWS, sample_weight=masked(np.ones(24))),
    "targets of rows": lambda: mh.ConditionalKernelMean().fit(ROWS, masked(ROWS[:, 0])),
    "targets of bags": lambda: mh.DistributionRidge().fit(BAGS, masked(np.arange(12.0))),
    "classes of bags": lambda: mh.DistributionRidgeClassifier().fit(BAGS, masked(np.arange(12) % 2)),
    "classes of a machine": lambda: mh.SupportMeasureClassifier().fit(BAGS, masked(np.arange(12) % 2)),
    "groups of bags": lambda: mh.DistributionRidge().fit(BAGS, np.arange(12.0), groups=masked(np.arange(12) % 6)),
    "groups of rows": lambda: mh.group_distances(ROWS, masked(np.arange(24) % 3)),
    "strata": lambda: mh.mmd_test(ROWS[:12], ROWS[12:], strata=masked(np.arange(24) % 2)),
    "clusters": lambda: mh.mmd_test(ROWS[:12], ROWS[12:], clusters=masked(np.arange(24))),
}


@pytest.mark.parametrize("name", MASKED)
def test_what_a_mask_hides_is_not_read(name):
    with pytest.raises(ValueError, match=r"has masked entries; drop such rows first|\[1\] is missing"):
        MASKED[name]()
