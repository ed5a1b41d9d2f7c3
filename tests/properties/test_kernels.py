"""Every kernel of the table against its formula and by its properties, and kernels from elsewhere."""

import math
import pickle
from fractions import Fraction

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise
from tables import FUNCTIONS, KERNELS, data_sets, sample

import muhat as mh

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
by_width = pytest.mark.parametrize("width", [1, 3, 4, 5, 30])  # up to 4 columns distances go one way, beyond another
DATA = data_sets()

# ---------------------------------------------------------------- values


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("data", DATA)
def test_gram_and_diagonal(name, data):
    X = DATA[data]
    Y = sample(4, X.shape[1], seed=99)
    kernel, k = KERNELS[name], FUNCTIONS[name]
    # Matern's kernels take a root of the squared distance, which turns rounding 1e-16 of |x|^2 into its root.
    atol = 1e-10 * max(1.0, np.abs(oracles.gram(k, X, X)).max())
    assert_allclose(kernel(X, Y), oracles.gram(k, X, Y), rtol=1e-10, atol=atol)
    assert_allclose(kernel(X), oracles.gram(k, X, X), rtol=1e-10, atol=atol)
    assert_allclose(kernel.diag(X), k(X, X), rtol=1e-10)
    assert_array_equal(kernel(X), kernel(X).T)


@every_kernel
def test_a_number_is_resolved_already(kernel):
    assert kernel.resolve(DATA["generic"]) == kernel


def test_composite_kernels_resolve_their_parts():
    X = DATA["generic"]
    s = mh.Gaussian().resolve(X)
    assert (mh.Gaussian() + mh.Linear()).resolve(X) == s + mh.Linear()
    assert (mh.Gaussian() * mh.Linear()).resolve(X) == s * mh.Linear()
    assert (2.0 * mh.Gaussian()).resolve(X) == 2.0 * s


# ---------------------------------------------------------------- properties


@every_kernel
@by_width
def test_symmetric_and_positive_semidefinite(kernel, width):
    X = np.concatenate([sample(20, width, seed=1), sample(3, width, seed=1)])
    K = kernel(X)
    assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)
    Y = sample(7, width, seed=2)
    assert_allclose(kernel(X, Y), kernel(Y, X).T, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    ("kernel", "largest"),
    [
        *[(kernel, 1.0) for kernel in KERNELS.values() if isinstance(kernel, mh.Gaussian | mh.Laplace | mh.Matern)],
        (2.0 * (mh.Gaussian(1.0) + 3.0 * mh.Laplace(1.0)) * mh.Matern(1.5, 1.0), 8.0),
        (mh.Gaussian(1.0) + mh.Linear(), np.inf),
        (0.5 * mh.Gaussian(1.0) * mh.Polynomial(2), np.inf),
        (mh.as_kernel(pairwise.cosine_similarity), np.inf),  # bounded, but nobody knows
        (mh.Centered(mh.Gaussian(1.0), mh.embed(mh.Gaussian(1.0), DATA["generic"])), np.inf),  # has negative values
    ],
)
def test_largest_values(kernel, largest):
    assert mh.kernels.upper_bound(kernel) == largest
    K = kernel(DATA["generic"])
    if np.isfinite(largest):
        assert K.min() >= 0
        assert_allclose(np.diag(K), largest, rtol=1e-14)


@every_kernel
def test_symmetric_to_the_last_bit_with_many_rows(kernel):
    """Rows are visited in blocks; a pair must not depend on the block in which it falls."""
    X = np.concatenate([1e-3 * sample(300, 6, seed=3), sample(300, 6, seed=4)])
    K = kernel(X)
    assert_array_equal(K, K.T)


@every_kernel
@by_width
def test_diag_is_the_diagonal(kernel, width):
    X = sample(20, width, seed=3)
    assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-13)
    assert_allclose(kernel.diag(X), np.diag(kernel(X, X.copy())), rtol=1e-13)


@every_kernel
def test_a_value(kernel):
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy == kernel
    assert hash(copy) == hash(kernel)
    assert eval(repr(kernel), vars(mh.kernels)) == kernel
    assert kernel.with_params(**kernel.get_params()) == kernel
    assert sum(other == kernel for other in KERNELS.values()) == 1
    with pytest.raises(AttributeError):
        kernel.bandwidth = 7.0


@pytest.mark.parametrize("right", KERNELS)
@pytest.mark.parametrize("left", ["linear", "gaussian", "scaled_sum"])
def test_sums_products_and_multiples(left, right):
    X, Y = sample(6, 3, seed=4), sample(5, 3, seed=5)
    k, other = KERNELS[left], KERNELS[right]
    K, L = oracles.gram(FUNCTIONS[left], X, Y), oracles.gram(FUNCTIONS[right], X, Y)
    assert_allclose((k + other)(X, Y), K + L, rtol=1e-10, atol=1e-12)
    assert_allclose((k * other)(X, Y), K * L, rtol=1e-10)
    for factor in (2.5, np.float64(2.5), np.float32(2.5), Fraction(5, 2)):
        assert_allclose((factor * k)(X, Y), 2.5 * K, rtol=1e-10)
        assert factor * k == k * factor


@pytest.mark.parametrize("factor", [0, 0.0, -1, -2.5, np.nan, np.inf])
@every_kernel
def test_a_multiple_is_positive(kernel, factor):
    for multiply in (lambda: factor * kernel, lambda: kernel * factor):
        with pytest.raises(ValueError, match=r"factor=.* must be a number in \(0, inf\)"):
            multiply()


# ---------------------------------------------------------------- against scikit-learn


@by_width
def test_against_scikit_learn(width):
    X, Y, s = sample(8, width, seed=6), sample(5, width, seed=7), 1.3
    pairs = [
        (mh.Linear(), pairwise.linear_kernel(X, Y)),
        (mh.Gaussian(s), pairwise.rbf_kernel(X, Y, gamma=1 / (2 * s**2))),
        (mh.Laplace(s), pairwise.laplacian_kernel(X, Y, gamma=1 / s)),
        *[(mh.Polynomial(p, 0.7), pairwise.polynomial_kernel(X, Y, p, gamma=1, coef0=0.7)) for p in (1, 2, 3, 5)],
        *[(mh.Matern(nu, s), gp.Matern(length_scale=s, nu=nu)(X, Y)) for nu in (0.5, 1.5, 2.5)],
    ]
    for kernel, expected in pairs:
        assert_allclose(kernel(X, Y), expected, rtol=1e-10, atol=1e-14)


def test_reprs_have_few_digits_and_equality_has_all():
    kernel = mh.Gaussian(1.23456789012345)
    assert repr(kernel) == "Gaussian(bandwidth=1.23457)"
    assert repr(2.0 * kernel + mh.Matern(1.5, 0.1)) == (
        "Sum(left=Scaled(factor=2.0, kernel=Gaussian(bandwidth=1.23457)), right=Matern(nu=1.5, bandwidth=0.1))"
    )
    assert kernel.exact_repr() == "Gaussian(bandwidth=1.23456789012345)"
    other = mh.Gaussian(1.23456789012346)
    assert kernel != other
    with pytest.raises(ValueError, match=r"1\.23456789012345\) and Gaussian\(bandwidth=1\.23456789012346\)"):
        mh.embed(kernel, [[0.0]]).inner(mh.embed(other, [[0.0]]))


def test_parameters_of_other_libraries_lead_on():
    with pytest.raises(TypeError, match=r"Gaussian has no parameter 'gamma'; .*bandwidth=\(2 \* gamma\)"):
        mh.Gaussian(gamma=0.5)
    with pytest.raises(TypeError, match=r"no parameter 'length_scale'; pass the length as bandwidth="):
        mh.Matern(length_scale=1.0)
    gamma = 0.7
    assert_allclose(mh.Gaussian((2 * gamma) ** -0.5)([[0.0]], [[1.0]]), np.exp(-gamma), rtol=1e-12)


def test_a_function_that_is_not_a_kernel_is_refused():
    X = np.random.default_rng(0).normal(size=(300, 2))

    def distance(A, B):
        return np.abs(A[:, None] - B).sum(axis=2)

    def lopsided(A, B):
        return A[:, :1] + 2.0 * B[:, 0]

    for function, reason in ((distance, "not positive semi-definite"), (lopsided, "not symmetric")):
        for estimator in (mh.KernelMean, mh.ShrunkKernelMean, mh.SpectralKernelMean):
            with pytest.raises(ValueError, match=f"is not a kernel on these rows: .*{reason}"):
                estimator(mh.as_kernel(function)).fit(X)
    with pytest.raises(ValueError, match="is not positive semi-definite"):
        mh.KernelPCA(kernel="precomputed").fit(distance(X, X))


@pytest.mark.parametrize("kernel", [mh.Linear(), mh.Polynomial(2, constant=0.0), 3.0 * mh.Linear()])
def test_values_that_vanish_are_refused_with_a_remedy(kernel):
    X = 1e-170 * sample(6, 2, seed=0)
    with pytest.raises(ValueError, match=r"underflows on X.*Multiply X by a constant, or divide each column"):
        mh.KernelMean(kernel).fit(X)
    mh.KernelMean(kernel).fit(np.zeros((3, 2)))  # zeros are not too small, they are zero
    mh.KernelMean(mh.Polynomial(2, constant=1.0)).fit(X)


def test_rows_infinitely_many_widths_away_are_near_repeated_ones_only():
    X = np.array([[1e308, 0.0], [1e308, 0.0], [1.1e308, 0.0], [0.0, 0.0]])
    expected = np.eye(4)
    expected[0, 1] = expected[1, 0] = 1.0
    assert_array_equal(mh.Laplace(1e-300)(X), expected)


# ---------------------------------------------------------------- one pair at a time, at every scale


def crowded_rows(rng):
    """Rows in crowds that may lie very far apart, in units from the smallest to the largest, and a bandwidth."""
    d, sizes, unit = int(rng.choice([1, 2, 3, 5, 9, 40])), rng.integers(1, 8, size=2), 10.0 ** rng.choice(UNITS)
    centres = rng.normal(size=(3, d)) * 10.0 ** rng.choice([0, 3, 8, 12, 150, 300]) * (rng.random((3, d)) < 0.5)
    with np.errstate(over="ignore"):
        X, Y = ((rng.normal(size=(n, d)) + centres[rng.integers(3, size=n)]) * unit for n in sizes)
    Y[0] = X[0] if rng.random() < 0.3 else Y[0]
    return np.clip(X, -1e300, 1e300), np.clip(Y, -1e300, 1e300), unit * 10.0 ** rng.choice([-2, 0, 2])


UNITS = [-300, -160, -20, -8, 0, 8, 20, 160, 290]


def slow_distance(x, y, norm):
    """The norm of x − y, from exact differences in units of the largest."""
    gaps = [abs(a - b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    largest = max(gaps)
    return largest * math.fsum((gap / largest) ** norm for gap in gaps) ** (1 / norm) if largest > 0 else 0.0


@pytest.mark.parametrize("seed", range(60))
def test_values_are_those_of_single_pairs_at_every_scale(seed):
    X, Y, width = crowded_rows(np.random.default_rng(seed))
    profiles = {
        mh.Gaussian(width): (2, lambda r: math.exp(-0.5 * r**2)),
        mh.Matern(1.5, width): (2, lambda r: (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)),
        mh.Laplace(width): (1, lambda r: math.exp(-r)),
    }
    for kernel, (norm, profile) in profiles.items():
        slow = [[profile(min(slow_distance(x, y, norm) / width, 1e4)) for y in Y] for x in X]
        assert_allclose(kernel(X, Y), slow, rtol=0, atol=1e-8)


MIXED = {
    "linear + gaussian": mh.Linear() + mh.Gaussian(1.0),
    "gaussian + linear": mh.Gaussian(1.0) + mh.Linear(),
    "gaussian + laplace": mh.Gaussian(1.0) + mh.Laplace(0.7),
    "gaussian * polynomial": mh.Gaussian(1.0) * mh.Polynomial(2),
    "polynomial * gaussian": mh.Polynomial(2) * mh.Gaussian(1.0),
    "gaussian * matern": mh.Gaussian(1.0) * mh.Matern(1.5, 2.0),
    "3 * laplace": 3.0 * mh.Laplace(1.0),
    "3 * linear": 3.0 * mh.Linear(),
}


@pytest.mark.parametrize("kernel", [*KERNELS.values(), *MIXED.values()], ids=repr)
def test_stationary_and_isotropic_kernels_are_those_that_motions_do_not_change(kernel):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 6, 3))
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    same_moved = np.allclose(kernel(X + 2.0, Y + 2.0), kernel(X, Y), rtol=1e-9)
    same_rotated = same_moved and np.allclose(kernel(X @ rotation, Y @ rotation), kernel(X, Y), rtol=1e-9)
    assert mh.kernels.is_stationary(kernel) == same_moved
    assert mh.kernels.is_isotropic(kernel) == same_rotated
