"""Errors that newcomers make first, with messages that lead on, and what a notebook shows."""

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pytest
import sklearn
from bag_samples import BAG_ESTIMATORS
from errors import refused
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

import muhat as mh
from muhat.plotting.functions import FunctionDisplay

LISTS_NO_ATTRIBUTES = parse_version(sklearn.__version__) < parse_version("1.8")
"""Notebooks show the parameters of an estimator only."""
X = np.random.default_rng(0).normal(size=(30, 3))
Y = 2.0 * X + 1.0
GAPS = np.where(np.arange(90).reshape(30, 3) == 40, np.nan, X)
FRAME = pd.DataFrame({"age": [31.0, 27.0, 45.0], "city": ["Rome", "Oslo", "Lima"]})
LINE = np.arange(2000.0)[:, None]
BAGS = X.reshape(10, 3, 3)
DAYS = pd.DataFrame({"age": [31.0, 27.0, 45.0], "day": pd.date_range("2024-02-28", periods=3)})
TARGET = mh.embed(mh.Gaussian(1.0), X)
POOLED = r"pooled data, and use it for both: kernel = kernel\.resolve\(np\.vstack\(\[X, Y\]\)\)"


def fit(data, mean=mh.KernelMean, **parameters):
    return lambda: mean(**parameters).fit(data)


MISTAKES = [
    # what, how, the error unless it is a ValueError, the remedy that the message must name
    ("a column as a vector", fit(X[:, 0]), r"reshape\(-1, 1\)"),
    ("a row as a vector", lambda: mh.mmd_test(X[0], Y), r"reshape\(1, -1\)"),
    ("a row for a mean", lambda: mh.KernelMean().fit(X).mean_(X[0]), r"reshape\(1, -1\)"),
    ("nothing", fit(None), "X is not a matrix; pass rows and columns"),
    ("no columns", fit(pd.DataFrame(index=range(5))), "X has no columns; pass one or more"),
    ("columns and rows exchanged", lambda: mh.mmd_test(X, Y.T), "3 columns and Y has 30; .*same columns"),
    ("bags for rows", fit(BAGS), r"list of matrices to DistributionKernel .*X\.reshape\(len\(X\), -1\)"),
    ("bags embedded", lambda: mh.embed(mh.Gaussian(1.0), BAGS), "DistributionKernel"),
    ("bags tested", lambda: mh.mmd_test(BAGS, BAGS), "DistributionKernel"),
    ("uneven bags for rows", fit([X, X[:7]]), "different lengths; .*DistributionKernel"),
    ("rows for bags", lambda: mh.DistributionKernel().fit(X), r"bags_from_groups\(X, groups\)"),
    ("rows for a machine", lambda: mh.SupportMeasureClassifier().fit(X, y=X[:, 0] > 0), "bags_from_groups"),
    ("a frame for bags", lambda: mh.DistributionKernel().fit(pd.DataFrame(X)), "bags_from_groups"),
    ("text in a column", fit(FRAME), "'Rome'.*; encode or drop such columns.*OneHotEncoder"),
    (
        "text in a test",
        lambda: mh.mmd_test(FRAME, X),
        "X has 2 columns and Y has 3",
    ),
    ("text in a PCA", fit(FRAME, mh.KernelPCA), "OneHotEncoder"),
    ("text in a bag", lambda: mh.DistributionKernel().fit([FRAME, FRAME]), r"bags\[0\].*OneHotEncoder"),
    (
        "a file name",
        fit("rows.csv"),
        r"X='rows\.csv' is not a matrix; read the file first.*pandas\.read_csv",
    ),
    ("a path", lambda: mh.mmd_test(X, Path("rows.csv")), "Y=.*rows.csv.* is not a matrix; read the file"),
    ("dates", fit(DAYS), r"dates or durations \(day datetime64.*drop such columns, or turn them into num"),
    ("dates of polars", fit(polars.from_pandas(DAYS)), r"dates or durations \(day Datetime"),
    ("dates alone", fit(DAYS[["day"]].to_numpy()), r"dates or durations \(datetime64"),
    ("durations", fit(DAYS[["day"]] - DAYS["day"].min()), r"dates or durations \(day timedelta64"),
    ("a dictionary", fit({"age": [31, 27]}), TypeError, "not 'dict'.; pass a matrix: an array, a data frame or a list"),
    ("an estimator for rows", fit(mh.KernelMean()), TypeError, "not 'KernelMean'.; pass a matrix"),
    ("records", fit(FRAME[["age"]].to_records()), TypeError, r"array of records; make it a matrix, pandas\.DataFrame"),
    ("masked entries", fit(np.ma.masked_greater(X, 1.0)), r"masked .*np\.ma\.compress_rows\(X\)"),
    ("complex numbers", fit(X + 1j), r"not supported; .*np\.hstack\(\[X\.real, X\.imag\]\)"),
    ("no fit before score", lambda: mh.KernelMean().score(X), NotFittedError, "Call 'fit'"),
    ("no fit before transform", lambda: mh.KernelPCA().transform(X), NotFittedError, "Call 'fit'"),
    ("no fit before predict", lambda: mh.SupportMeasureClassifier().predict([X]), NotFittedError, "Call 'fit'"),
    ("data in place of the kernel", lambda: mh.KernelMean(X).mean_, NotFittedError, "Call 'fit'"),
    ("bandwidth unknown", lambda: mh.Gaussian()(X), r"call kernel\.resolve\(X\)"),
    (
        "bandwidth of sklearn's",
        lambda: mh.Gaussian("scale"),
        r"bandwidth='scale' must be .* or be \"median\"",
    ),
    ("bandwidth zero", lambda: mh.Gaussian(0), r"bandwidth=0 must be a number in \(0, inf\)"),
    ("no such parameter", lambda: mh.KernelMean().set_params(kernel__gamma=1.0), r"has \['bandwidth'\]"),
    ("a function of two rows", fit(X, kernel=mh.as_kernel(lambda x, y: x @ y)), "pairwise_kernels"),
    ("a number of two rows", fit(X, kernel=mh.as_kernel(lambda x, y: 1.0)), "pairwise_kernels"),
    ("gaps", fit(GAPS), r"contains NaN; drop such rows, X\[np\.isfinite\(X\)\.all\(axis=1\)\], .*Imputer"),
    ("gaps in a bag", lambda: mh.DistributionKernel().fit([X, GAPS]), r"bags\[1\].*drop such rows"),
    ("infinity", fit(np.where(np.isnan(GAPS), np.inf, X)), "infinity.*drop such rows.* rescale X"),
    ("one row", fit(X[:1]), r"minimum of 2 .*rows are observations .* shape \(n, 1\)"),
    ("one row in a PCA", fit(X[:1], mh.KernelPCA), "minimum of 2 .*rows are observations"),
    ("one row in a test", lambda: mh.mmd_test(X[:1], Y), "at least 2 are needed"),
    ("equal rows", fit(np.ones((5, 2))), r"Gaussian\(bandwidth=1\.0\)"),
    ("two medians", lambda: mh.embed(mh.Gaussian(), X).distance(mh.embed(mh.Gaussian(), Y)), POOLED),
    ("two medians added", lambda: mh.KernelMean().fit(X).mean_ + mh.KernelMean().fit(Y).mean_, POOLED),
    ("a target elsewhere", fit(X, mh.ShrunkKernelMean, target=TARGET), r"kernel = kernel\.resolve\(X\)"),
    ("a target elsewhere, adaptive", fit(X, mh.AdaptiveKernelMean, target=TARGET), r"kernel\.resolve\(X\)"),
    ("an array for an element", lambda: mh.embed(mh.Linear(), X).distance(Y), r"muhat\.embed\(kernel, X\)"),
    ("an estimator for an element", lambda: TARGET.distance(mh.KernelMean()), "use the mean_ of a fitted"),
    (
        "too many rows for flexible",
        fit(LINE, mh.SpectralKernelMean, solver="dense", memory_limit=1e6),
        MemoryError,
        "2,000 rows would need 128 MB and 1 MB may be used; .*ShrunkKernelMean",
    ),
    ("too many for adaptive", fit(LINE, mh.AdaptiveKernelMean, memory_limit=1e6), MemoryError, "ShrunkKernelMean"),
    (
        "too many for PCA",
        lambda: mh.KernelPCA(kernel=mh.Gaussian(1.0)).fit(np.zeros((10**6, 1))),
        MemoryError,
        "muhat.Nystroem features",
    ),
]


test_the_message_names_the_remedy = refused(MISTAKES)


ESTIMATORS = [thing for thing in map(vars(mh).get, mh.__all__) if inspect.isclass(thing) and hasattr(thing, "fit")]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
OF_BAGS = {mh.BagScaler, *map(type, BAG_ESTIMATORS.values())}
SMALL = {
    mh.DriftMonitor: {"run_length": 2, "n_simulations": 100, "block_length": 1},
    mh.MatchedGaussianMixture: {"n_components": 2, "n_init": 1},
    mh.Nystroem: {"n_components": 5},
}


def fitted(estimator, **parameters):
    data = {mh.ShrunkKernelCenterer: (mh.Gaussian(1.0)(X),)}
    data |= dict.fromkeys(OF_BAGS, (BAGS, np.arange(10) % 2)) | {mh.ConditionalKernelMean: (X, Y)}
    return estimator(**SMALL.get(estimator, {}), **parameters).fit(*data.get(estimator, (X,)))


@every_estimator
def test_fitted_names_are_there_after_fit_and_not_before(estimator):
    fresh, names = estimator(), [name for name in dir(fitted(estimator)) if re.fullmatch(r"[a-z]\w*_", name)]
    assert len(names) > 1
    for name in names:
        assert not hasattr(fresh, name)


@every_estimator
@pytest.mark.parametrize(
    "kernel", ["rbf", mh.Gaussian, np.dot, None, X], ids=["word", "class", "function", "none", "X"]
)
def test_a_kernel_that_is_none(estimator, kernel):
    taken = [name for name in ("kernel", "kernel_x") if name in inspect.signature(estimator).parameters]
    parameters = inspect.signature(estimator).parameters
    for name in taken:
        if kernel is None and parameters[name].default is None:  # a default of its own
            continue
        with pytest.raises(ValueError, match=rf"{name}(=| of type )[\s\S]*Gaussian\(\)") as caught:
            fitted(estimator, **{name: kernel})
        if issubclass(estimator, mh.KernelMean.__base__ | mh.KernelPCA | mh.Nystroem.__base__):
            assert "such as muhat.Gaussian()" in str(caught.value)
            assert str(caught.value).endswith("; wrap other kernels by muhat.as_kernel")


@pytest.mark.parametrize(
    "call",
    [
        lambda: mh.mmd_test(X, Y, kernel="rbf"),
        lambda: mh.hsic_test(X, Y, kernel_y="rbf"),
        lambda: mh.embed("rbf", X),
        lambda: mh.oracle_shrinkage("rbf", mh.paper_mixture(3, random_state=0), 5),
        lambda: mh.KernelCovariance(kernel_y="rbf").fit(X, Y),
    ],
    ids=["mmd", "hsic", "embed", "oracle", "covariance"],
)
def test_a_word_for_a_kernel_in_a_function(call):
    with pytest.raises(
        ValueError, match=r"kernel(_y)?='rbf' must be .* such as muhat\.Gaussian\(\); .*muhat\.as_kernel"
    ):
        call()


def test_after_fit_a_wrong_name_is_a_wrong_name():
    with pytest.raises(AttributeError, match="'KernelMean' object has no attribute 'shrinkage_'") as caught:
        _ = mh.KernelMean().fit(X).shrinkage_
    assert not isinstance(caught.value, NotFittedError)


def test_a_property_has_its_own_word():
    fit = mh.KernelPCA(2, mean=mh.SpectralKernelMean(lam=0.1)).fit(X).mean_fit_
    with pytest.raises(AttributeError, match='Use lam="loo"'):
        _ = fit.loo_score


def test_messages_fit_a_terminal_and_leave_no_brace():
    """Those that are put together from a template: one line says all."""
    wrong = [(GAPS, "Input X"), (BAGS, "Found array"), (X[:1], "Found array"), (FRAME, "X holds")]
    calls = [(fit(data), start) for data, start in wrong]
    calls += [
        (lambda: mh.confidence_ball(mh.KernelMean().fit(X), X), "level="),
        (lambda: mh.KernelPCA(FRAME).fit(X), "n_"),
    ]
    for call, start in calls:
        with pytest.raises(ValueError, match=start) as caught:
            call()
        assert len(str(caught.value).splitlines()) == 1
        assert len(str(caught.value)) < 250
        assert not {"{", "}"} & set(str(caught.value))


def test_bags_of_equal_size_are_bags():
    """An array of three dimensions is a list of matrices, and never rows that were made flat."""
    stacked, listed = (mh.DistributionKernel().fit_transform(bags) for bags in (BAGS, list(BAGS)))
    assert stacked.shape == (10, 10)
    np.testing.assert_array_equal(stacked, listed)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: FunctionDisplay.from_estimator(mh.KernelMean().fit(X[:, :2]), X[:, :2]),
        lambda: FunctionDisplay.from_bands(mh.KernelMean().fit(X), X),
    ],
    ids=["mean", "bands"],
)
def test_a_picture_without_matplotlib(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'needs matplotlib .*pip install "muhat\[plot\]", or in a clone'):
        draw()


# ----------------------------------------------------------------------------------------------------------- notebooks

MEANS = [
    mh.KernelMean(),
    mh.ShrunkKernelMean(),
    mh.SpectralKernelMean(),
    mh.AdaptiveKernelMean(),
    mh.RobustKernelMean(),
]


@pytest.mark.parametrize("mean", [*MEANS, mh.ConstrainedKernelMean(), mh.SpectralKernelMean(lam=0.1)], ids=repr)
def test_notebooks_and_completion_compute_no_score(mean):
    """They ask for every name: a score that takes long is computed once somebody asks for it, and not before."""
    mean = clone(mean).fit(X)
    assert {"weights_", "mean_"} <= set(dir(mean))
    for holder in (mean, make_pipeline(StandardScaler(), mean)):
        assert LISTS_NO_ATTRIBUTES or "weights_" in holder._repr_html_()
    assert "_scored" not in vars(mean._estimate) or mean._estimate.known is not None
    assert mean.loo_score_ > 0


@pytest.mark.parametrize("mean", MEANS, ids=lambda mean: type(mean).__name__)
def test_a_fitted_mean_in_a_notebook_shows_no_rows(mean):
    marked = np.array(X)
    marked[:, 0] = 12345.5 + np.arange(30)
    shown = mean.fit(marked)._repr_html_()
    assert type(mean).__name__ in shown
    assert "12345" not in shown
