"""The score of a mean cannot choose a kernel, and says so."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import muhat as mh

X = np.random.default_rng(0).normal(size=(30, 2))


@pytest.mark.parametrize("grid", [{"kernel__bandwidth": [0.5, 5.0]}, {"kernel": [mh.Gaussian(1.0), mh.Laplace(1.0)]}])
def test_a_grid_of_kernels_is_warned_of(grid):
    with pytest.warns(UserWarning, match="scores of different kernels cannot be compared: the widest always wins"):
        GridSearchCV(mh.ShrunkKernelMean(mh.Gaussian(1.0)), grid, cv=2).fit(X)


def test_other_grids_and_other_scores_are_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GridSearchCV(mh.ShrunkKernelMean(mh.Gaussian(1.0)), {"shrinkage": [0.0, 0.1]}, cv=2).fit(X)
        mh.KernelMean(mh.Gaussian(1.0)).fit(X).score(X)
