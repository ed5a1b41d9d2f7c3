"""Every component of the default two-sample test against its formula, on rows and on bins of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from permutation_tests import splits_of
from tables import sample

import muhat as mh
from muhat.inference import difference_statistics, kernel_sums
from muhat.inference.difference_statistics import default_components, normal_scores
from muhat.inference.kernel_sums import mean_similarities, sums_from_features
from muhat.inference.permutations import Splits
from muhat.linalg.whitening import Whitening, standardised

RNG = np.random.default_rng(0)


def whitened(rows):
    """Symmetrically whitened rows and residuals, from the definitions."""
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    values, V = np.linalg.eigh(z.T @ z / len(z))
    values = values + 1e-3 * values[-1]
    return z @ V / np.sqrt(values) @ V.T, z @ V / values @ V.T


def slow_matrices(rows):
    """The Gram matrices of the default test, a pair at a time."""
    h, medians = difference_statistics.pooled_bandwidths(rows), difference_statistics.column_medians(rows)
    white, residuals = whitened(rows)
    q, s, r = normal_scores(rows), normal_scores(white), standardised(residuals)
    of_residuals = difference_statistics.column_medians(r)

    def gaussian(bandwidth):
        return lambda i, j: np.exp(-((rows[i] - rows[j]) ** 2).sum() / (2 * bandwidth**2))

    formulas = {
        "Gaussian": gaussian(h[0]),
        "widest Gaussian": gaussian(h[7]),
        "sum over columns": lambda i, j: np.exp(-4 * np.abs(rows[i] - rows[j]) / medians).sum(),
        "sum over residuals": lambda i, j: np.exp(-np.abs(r[i] - r[j]) / of_residuals).sum(),
        "second moments": lambda i, j: (q[i] @ q[j] / rows.shape[1]) ** 2,
        "whitened second moments": lambda i, j: (s[i] @ s[j] / rows.shape[1]) ** 2,
        "linear": lambda i, j: standardised(rows)[i] @ standardised(rows)[j],
    }
    n = range(len(rows))
    return {name: np.array([[formula(i, j) for j in n] for i in n]) for name, formula in formulas.items()}


def slow_contrast(K, split):
    """Unbiased MMD², and the difference of the mean similarities."""
    x, y = np.flatnonzero(split), np.flatnonzero(1 - split)

    def average(rows, columns):
        return np.mean([K[i, j] for i in rows for j in columns if i != j])

    alpha, beta, gamma = average(x, x), average(y, y), average(x, y)
    return alpha + beta - 2 * gamma, alpha - beta


BY_COLUMN = {"sum over columns", "sum over residuals"}


@pytest.mark.parametrize(("n", "m", "size"), [(4, 4, 1), (9, 13, 1), (5, 6, 3)])
def test_components_are_the_slow_formulas(n, m, size, monkeypatch):
    monkeypatch.setattr(kernel_sums, "STRIP", 5)
    monkeypatch.setattr(kernel_sums, "COLUMNS", 6)
    rows = np.random.default_rng(1).standard_t(3, size=(size * (n + m), 3))
    everything, splits = splits_of(n, m)
    found = default_components(rows, size, splits, RNG)
    want = {}
    for name, K in slow_matrices(rows).items():
        in_bins = K.reshape(size, n + m, size, n + m).mean(axis=(0, 2))
        want[name] = np.array([slow_contrast(in_bins, split) for split in everything.T]).T
    compared = set()
    for part in found:
        name = part.name
        if name in want:
            # In bins, distances are in single precision and columns are rounded to quantiles.
            atol = 1e-12 if size == 1 else 0.02 if name in BY_COLUMN else 1e-5
            assert_allclose(part.statistics, want[name][0], rtol=0, atol=atol, err_msg=name)
            compared.add(name)
    assert compared == set(want) - {"widest Gaussian"}
    for part_name, key in (("close pairs", "Gaussian"), ("dispersion", "widest Gaussian")):
        part = next(part for part in found if part.name == part_name)
        within = want[key][1]
        assert_allclose(part.statistics, np.abs(within - within.mean()), rtol=0, atol=1e-12 if size == 1 else 1e-5)


def differences(columns, split, size):
    """Differences of the means of columns between two samples of bins."""
    of_rows = np.tile(split == 1, size)
    return columns[of_rows].mean(axis=0) - columns[~of_rows].mean(axis=0)


@pytest.mark.parametrize("size", [1, 2])
def test_single_columns_and_their_residuals_are_loops(size):
    rows = sample(20 * size, 3, seed=4)
    rows[:, 1] = rows[:, 0] + 0.1 * rows[:, 1]
    rows[np.tile(np.arange(20) >= 12, size), 2] *= 9.0
    everything, splits = splits_of(12, 8)
    q, residuals = normal_scores(rows), standardised(whitened(rows)[1])
    components = {part.name: part for part in default_components(rows, size, splits, RNG)}
    found, relation, whitening = components["largest column"], components["residuals"], Whitening.of(rows)
    for part, columns, squares in ((found, q, q**2), (relation, residuals, normal_scores(residuals) ** 2)):
        both = np.hstack([columns, standardised(squares)])
        want = [(differences(both, split, size) ** 2).max() for split in everything.T]
        assert_allclose(part.statistics, want, rtol=1e-8)
    assert found.value == (2, "scale", "Y")
    assert relation.value == (2, "scale", "Y", whitening.partner(2))
    assert whitening.partner(0) == 1


def test_hotelling_has_the_p_value_of_the_refitted_within_covariance():
    """S_T = S_W + (nm/N²)ddᵀ: with S_W refitted for every split the statistic is a monotone function of ours."""
    rows = sample(16, 3, seed=0) @ np.array([[1.0, 0.9, 0.0], [0.0, 0.1, 0.0], [0.3, 0.0, 1.0]])
    everything, splits = splits_of(9, 7, count=60)
    whitening = Whitening.of(rows)
    ours = next(part.statistics for part in default_components(rows, 1, splits, RNG) if part.name == "Hotelling")
    z = whitening.standardise(rows)
    lam = 1e-3 * np.linalg.eigvalsh(z.T @ z / 16)[-1]
    within = []
    for split in everything.T == 1:
        f, g = z[split], z[~split]
        d = f.mean(axis=0) - g.mean(axis=0)
        S_W = ((f - f.mean(axis=0)).T @ (f - f.mean(axis=0)) + (g - g.mean(axis=0)).T @ (g - g.mean(axis=0))) / 16
        within.append(d @ np.linalg.solve(S_W + lam * np.eye(3), d))
    within = np.array(within)
    assert_allclose(ours, within / (1 + 9 * 7 / 16**2 * within), rtol=1e-9)


@pytest.mark.parametrize("size", [1, 2])
def test_kernel_fisher_is_regularised(size):
    rows = sample(30 * size, 2, seed=0)
    everything, splits = splits_of(14, 16)
    found = difference_statistics.kernel_fisher(rows, 0.8, size, splits, RNG)
    N = len(rows)
    H = np.eye(N) - 1 / N
    K = mh.Gaussian(0.8)(rows)
    lam = difference_statistics.RIDGE * np.linalg.eigvalsh(H @ K @ H)[-1]
    M = H @ K @ np.linalg.solve(K @ H @ K + lam * K + 1e-9 * np.trace(K @ H @ K + lam * K) * np.eye(N), K @ H)
    W = np.tile(everything / 14 - (1 - everything) / 16, (size, 1)) / size
    assert_allclose(found.statistics, np.einsum("ib,ij,jb->b", W, M, W), rtol=1e-4)


def test_statistics_do_not_depend_on_the_labels_of_rows():
    """To renumber the rows, and the splits with them, changes no component: the rows alone decide."""
    rows = np.random.default_rng(0).normal(size=(24, 3)).round(1)
    _, splits = splits_of(10, 14)
    order = np.random.default_rng(1).permutation(24)
    turned = Splits(splits.centred[order], 10, 14)
    plain, renumbered = default_components(rows, 1, splits, RNG), default_components(rows[order], 1, turned, RNG)
    for first, second in zip(plain, renumbered, strict=True):
        assert_allclose(second.statistics, first.statistics, rtol=1e-7, atol=1e-10, err_msg=first.name)


def test_features_are_their_kernels():
    """With all rows as landmarks, and few values in a column, features are exact."""
    rows = np.random.default_rng(0).integers(0, 5, size=(40, 3)) + 0.0
    rows[:, 0] += np.arange(40) / 40
    _, splits = splits_of(8, 12)
    means = difference_statistics.gaussian_bin_means(rows, [1.5], 2, RNG)[0]
    K = mh.Gaussian(1.5)(rows).reshape(2, 20, 2, 20).mean(axis=(0, 2))
    assert_allclose(means @ means.T, K, atol=1e-4)
    scores = normal_scores(rows)
    products = difference_statistics.product_bin_means(scores, 2)
    assert_allclose(products @ products.T, ((scores @ scores.T / 3) ** 2).reshape(2, 20, 2, 20).mean(axis=(0, 2)))
    columns = difference_statistics.scaled_columns(rows[:, 1:], 4.0, RNG)
    gaps = 4 * np.abs(rows[:, None, 1:] - rows[None, :, 1:]) / difference_statistics.column_medians(rows[:, 1:])
    in_bins = np.exp(-gaps).sum(axis=2).reshape(2, 20, 2, 20).mean(axis=(0, 2))
    want = mean_similarities(sums_from_features(np.linalg.cholesky(in_bins + 1e-9 * np.eye(20)), splits), splits)
    found = difference_statistics.by_column_sums(columns, 2, splits)
    assert_allclose(mean_similarities(found, splits).mmd, want.mmd, atol=1e-5)


def test_constant_columns_have_no_relations():
    rows = np.column_stack([np.arange(20.0), np.ones(20)])
    _, splits = splits_of(8, 12)
    assert not any(part.group == "relations" for part in default_components(rows, 1, splits, RNG))


def test_landmarks_are_drawn_by_value():
    """Else a seed would give each sample a number of landmarks that no permutation has."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(700, 3))
    splits, order = splits_of(200, 500, 20)[1], rng.permutation(700)
    moved = Splits(splits.centred[order], splits.n, splits.m)
    one, other = (
        difference_statistics.kernel_fisher(X, 2.0, 1, each, np.random.default_rng(0))
        for X, each in ((rows, splits), (rows[order], moved))
    )
    assert_allclose(other.statistics, one.statistics, rtol=1e-3)  # float32 splits


def test_landmarks_of_gaussians_do_not_know_the_order_of_rows():
    """With landmarks at fixed places of the pooled rows, a seed would say how many of them each sample has."""
    rows, order = RNG.normal(size=(900, 4)), RNG.permutation(900)
    one, other = (
        difference_statistics.gaussian_bin_means(each, [1.5], 1, np.random.default_rng(0))[0].astype(float)
        for each in (rows, rows[order])
    )
    assert_allclose(other @ other.T, (one @ one.T)[np.ix_(order, order)], atol=1e-4)


def test_columns_are_rounded_to_quantiles_only_where_they_are_long():
    rng = np.random.default_rng(0)
    short, long = rng.normal(size=difference_statistics.LEVELS), rng.normal(size=5 * difference_statistics.LEVELS)
    values, levels = difference_statistics._rounded_to_quantiles(short)
    np.testing.assert_array_equal(values[levels], short)
    values, levels = difference_statistics._rounded_to_quantiles(long)
    assert len(values) == difference_statistics.LEVELS
    assert np.corrcoef(values[levels], long)[0, 1] > 0.99
    assert (np.bincount(levels) >= 2).all()  # about five rows each
