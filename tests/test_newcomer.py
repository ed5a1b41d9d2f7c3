"""The mistakes that newcomers make first: each ends in a message that leads on. And what a notebook shows them."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import muhat as mh
from muhat.plotting import LooPathDisplay

X = np.random.default_rng(0).normal(size=(30, 3))
Y = 2.0 * X + 1.0
GAPS = np.where(np.arange(90).reshape(30, 3) == 40, np.nan, X)
FRAME = pd.DataFrame({"age": [31.0, 27.0, 45.0], "city": ["Rome", "Oslo", "Lima"]})
LINE = np.arange(2000.0)[:, None]
BAGS = X.reshape(10, 3, 3)


def fit(data, mean=mh.KernelMean, **parameters):
    return lambda: mean(**parameters).fit(data)


MISTAKES = [
    # what, how, error, the remedy that the message must name
    ("a column as a vector", fit(X[:, 0]), ValueError, r"reshape\(-1, 1\)"),
    ("a row as a vector", lambda: mh.mmd_test(X[0], Y), ValueError, r"reshape\(1, -1\)"),
    ("columns and rows exchanged", lambda: mh.mmd_test(X, Y.T), ValueError, "3 columns and Y has 30; .*same columns"),
    ("bags for rows", fit(BAGS), ValueError, r"list of matrices to DistributionKernel .*X\.reshape\(len\(X\), -1\)"),
    ("bags embedded", lambda: mh.embed(mh.Gaussian(1.0), BAGS), ValueError, "DistributionKernel"),
    ("rows for bags", lambda: mh.DistributionKernel().fit(X), ValueError, r"bags_from_groups\(X, groups\)"),
    ("a frame for bags", lambda: mh.DistributionKernel().fit(pd.DataFrame(X)), ValueError, "bags_from_groups"),
    ("text in a column", fit(FRAME), ValueError, "'Rome'.*; encode or drop such columns.*OneHotEncoder"),
    ("text in a test", lambda: mh.mmd_test(FRAME, FRAME), ValueError, "OneHotEncoder"),
    ("no fit before score", lambda: mh.KernelMean().score(X), NotFittedError, "Call 'fit'"),
    ("no fit before loo", lambda: mh.ShrunkKernelMean().loo_score_, NotFittedError, "Call 'fit'"),
    ("no fit before transform", lambda: mh.KernelPCA().transform(X), NotFittedError, "Call 'fit'"),
    ("no fit before predict", lambda: mh.SupportMeasureClassifier().predict([X]), NotFittedError, "Call 'fit'"),
    ("kernel as a string", fit(X, kernel="rbf"), ValueError, r"such as muhat\.Gaussian\(\)"),
    ("kernel as a string, test", lambda: mh.mmd_test(X, Y, kernel="rbf"), ValueError, r"such as muhat\.Gaussian\(\)"),
    ("kernel as a string, bags", lambda: mh.DistributionKernel("rbf").fit([X, Y]), ValueError, r"Gaussian\(\)"),
    ("kernel as a class", fit(X, kernel=mh.Gaussian), ValueError, r"such as muhat\.Gaussian\(\)"),
    ("kernel as a function", fit(X, kernel=np.dot), ValueError, "muhat.as_kernel"),
    ("bandwidth unknown", lambda: mh.Gaussian()(X), ValueError, r"call kernel\.resolve\(X\)"),
    ("gaps", fit(GAPS), ValueError, r"contains NaN; drop such rows, X\[np\.isfinite\(X\)\.all\(axis=1\)\], .*Imputer"),
    ("gaps in a test", lambda: mh.mmd_test(X, GAPS), ValueError, r"Y contains NaN; drop such rows, Y\[np.*Imputer"),
    ("gaps in a bag", lambda: mh.DistributionKernel().fit([X, GAPS]), ValueError, r"bags\[1\].*drop such rows"),
    ("infinity", fit(np.where(np.isnan(GAPS), np.inf, X)), ValueError, "infinity.*drop such rows.* rescale X"),
    ("one row", fit(X[:1]), ValueError, r"minimum of 2 .*rows are observations .* shape \(n, 1\)"),
    ("one row in a test", lambda: mh.mmd_test(X[:1], Y), ValueError, "needs at least 2"),
    ("equal rows", fit(np.ones((5, 2))), ValueError, r"Gaussian\(bandwidth=1\.0\)"),
    (
        "two medians",
        lambda: mh.embed(mh.Gaussian(), X).distance(mh.embed(mh.Gaussian(), Y)),
        ValueError,
        r"pooled data, and use it for both: kernel = kernel\.resolve\(np\.vstack\(\[X, Y\]\)\)",
    ),
    ("an array for an element", lambda: mh.embed(mh.Linear(), X).distance(Y), ValueError, r"muhat\.embed\(kernel, X\)"),
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


@pytest.mark.parametrize(
    ("call", "error", "remedy"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES]
)
def test_the_message_names_the_remedy(call, error, remedy):
    with pytest.raises(error, match=remedy):
        call()


def test_messages_fit_a_terminal_and_leave_no_brace():
    """Those that are put together from a template: one line says all."""
    for data, start in ((GAPS, "Input X"), (BAGS, "Found array"), (X[:1], "Found array"), (FRAME, "X holds")):
        with pytest.raises(ValueError, match=start) as caught:
            mh.KernelMean().fit(data)
        assert len(str(caught.value).splitlines()) == 1
        assert len(str(caught.value)) < 250
        assert not {"{", "}"} & set(str(caught.value))


def test_bags_of_equal_size_are_bags():
    """An array of three dimensions is a list of matrices, and never rows that were made flat."""
    stacked, listed = (mh.DistributionKernel().fit_transform(bags) for bags in (BAGS, list(BAGS)))
    assert stacked.shape == (10, 10)
    np.testing.assert_array_equal(stacked, listed)


def test_a_picture_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'muhat\[plot\]'"):
        LooPathDisplay.from_estimator(mh.ShrunkKernelMean().fit(X))


# ----------------------------------------------------------------------------------------------------------- notebooks

MEANS = [
    mh.KernelMean(),
    mh.ShrunkKernelMean(),
    mh.SpectralKernelMean(),
    mh.AdaptiveKernelMean(),
    mh.RobustKernelMean(),
]


def test_an_element_in_a_notebook():
    shown = mh.KernelMean(mh.Gaussian(2.0)).fit(X).mean_._repr_html_()
    assert "<td>Gaussian(bandwidth=2.0)</td>" in shown
    assert "<td>30 atoms</td>" in shown
    norm = np.sqrt(mh.Gaussian(2.0)(X).mean())
    assert f"<th>norm</th><td>{norm:.4g}</td>" in shown


@pytest.mark.parametrize(
    "element",
    [
        mh.embed(mh.Gaussian(), mh.paper_mixture(2, random_state=0)),
        mh.embed(mh.Laplace(1.0), mh.paper_mixture(2, random_state=0)),
        mh.embed(mh.Gaussian(1.0), np.zeros((1001, 1))),
    ],
    ids=["no bandwidth", "no closed form", "many atoms"],
)
def test_an_element_whose_norm_is_unknown_or_dear(element):
    shown = element._repr_html_()
    assert "norm" not in shown
    assert "total weight</th><td>1<" in shown


def test_a_kernel_is_text_not_markup():
    assert "&lt;function" in mh.embed(mh.as_kernel(lambda x, y: x @ y.T), X)._repr_html_()


@pytest.mark.parametrize("mean", MEANS, ids=lambda mean: type(mean).__name__)
def test_a_fitted_mean_in_a_notebook_shows_no_rows(mean):
    marked = np.array(X)
    marked[:, 0] = 12345.5 + np.arange(30)
    shown = mean.fit(marked)._repr_html_()
    assert type(mean).__name__ in shown
    assert "12345" not in shown
    assert "12346" not in mean.mean_._repr_html_()
