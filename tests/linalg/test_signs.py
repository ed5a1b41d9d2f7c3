"""Signs of eigenvectors and singular vectors: one convention, so that no answer depends on what LAPACK returns."""

import sys

import numpy as np
import pytest
from bag_samples import random_bags
from numpy.testing import assert_allclose, assert_array_equal

import muhat as mh
from muhat.linalg.spectrum import signs
from muhat.linalg.whitening import Whitening

X = np.random.default_rng(0).normal(size=(30, 3)) @ np.diag([1.0, 2.0, 4.0])
Y = X[:, :2] ** 2
BAGS = random_bags((4, 9, 3, 12, 5, 8))
NUMBERS = np.arange(6.0)


def of_functions(system):
    return [f(rows) for rows, functions in ((Y, system.left), (X, system.right)) for f in functions]


ANSWERS = {
    "KernelPCA": lambda: mh.KernelPCA(3).fit_transform(X),
    "KernelPCA of many rows": lambda: mh.KernelPCA(2, mh.Gaussian(4.0)).fit_transform(np.tile(X, (20, 1)) + NOISE),
    "singular functions": lambda: of_functions(mh.KernelCovariance().fit(X, Y=Y).operator_.singular_system(3)),
    "principal scores": lambda: Whitening.of(X).principal_scores(X),
    "principal scores of few rows": lambda: Whitening.of(X[:3].T).principal_scores(X[:3].T),
    "Nystroem": lambda: mh.Nystroem(n_components=6, random_state=0).fit_transform(X),
    "Fourier": lambda: mh.Fourier(n_components=12, random_state=0).fit_transform(X),
    "BagPrior": lambda: mh.BagPrior(random_state=0).fit(BAGS).transform(BAGS),
    "BagPrior of pairs": lambda: mh.BagPrior(random_state=0).fit(BAGS[:2]).transform(BAGS),
    "DistributionRidge": lambda: mh.DistributionRidge(random_state=0).fit(BAGS, NUMBERS).predict(BAGS),
    "mmd_test": lambda: mh.mmd_test(X[:16], X[16:], n_resamples=39, random_state=0).null_distribution,
    "hsic_test": lambda: mh.hsic_test(X, Y, n_resamples=39, random_state=0).null_distribution,
}
NOISE = 0.1 * np.random.default_rng(1).normal(size=(600, 3))


def other_signs(found):
    """What a LAPACK routine returned, with every second vector of each matrix turned round."""
    arrays = [np.asarray(part) for part in found]
    matrices = [part for part in arrays if part.ndim == 2]
    if len(matrices) == 2:  # the singular vectors turn together
        U, values, Vt = arrays
        flips = np.where(np.arange(len(values)) % 2, 1.0, -1.0)
        return U * flips, values, Vt * flips[:, None]
    flips = np.where(np.arange(arrays[1].shape[-1]) % 2, 1.0, -1.0)
    return tuple(part * flips if np.ndim(part) == 2 else part for part in found)


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_do_not_depend_on_the_signs_of_lapack(name, monkeypatch):
    want = ANSWERS[name]()
    for module in [module for place, module in sys.modules.items() if place.startswith("muhat.")]:
        for routine in {"eigh", "svd", "eigsh", "dsyevd"} & vars(module).keys():
            real = vars(module)[routine]
            monkeypatch.setattr(module, routine, lambda *a, real=real, **k: other_signs(real(*a, **k)))
    assert_allclose(ANSWERS[name](), want, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("rounding", [-1e-15, 0.0, 1e-15])
def test_of_equal_entries_the_first_decides(rounding):
    vectors = np.array([[1.0, -2.0, 0.0, 3.0], [-1.0 - rounding, 2.0 + rounding, 0.0, -4.0]])
    assert_array_equal(signs(vectors), [1.0, -1.0, 1.0, -1.0])
    assert signs(np.empty((3, 0))).shape == (0,)
