"""A kernel that the library has never seen, in every subpackage."""

import ast
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from bag_samples import labelled_bags, random_bags
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import OAS
from sklearn.gaussian_process import kernels as sklearn_kernels
from tables import MEANS

import muhat as mh
from muhat.inference import confidence_ball, mean_bands, mmd_interval
from muhat.kernels.base import with_widths


@dataclass(frozen=True)
class RationalQuadratic(mh.kernels.Radial):
    """k(x, y) = (1 + ‖x − y‖² / 2as²)^(−a), with s = ``bandwidth`` and a = ``shape``."""

    bandwidth: float | str = "median"
    shape: float = 1.0

    def profile(self, r):
        return (1 + r**2 / (2 * self.shape)) ** -self.shape


@mh.kernels.sample_frequencies.register(RationalQuadratic)
def student_frequencies(kernel, width, count, rng):
    return rng.normal(size=(width, count)) * np.sqrt(rng.gamma(kernel.shape, 1 / kernel.shape, count))


def sample(n, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) + 0.5


X, Y = sample(40), sample(30, seed=1)
KERNEL = RationalQuadratic(1.5, shape=0.7)
PEER = sklearn_kernels.RationalQuadratic(length_scale=1.5, alpha=0.7)


def test_the_matrix_its_diagonal_and_its_bound():
    assert_allclose(KERNEL(X, Y), PEER(X, Y), rtol=1e-12)
    assert_array_equal(KERNEL.diag(X), 1.0)
    assert mh.kernels.upper_bound(KERNEL) == 1.0
    far = np.array([[0.0], [1e200], [-1e300]])
    assert_allclose(KERNEL(far), np.eye(3), atol=1e-100)


def test_the_median():
    assert RationalQuadratic().resolve(X).bandwidth == mh.Gaussian().resolve(X).bandwidth
    with pytest.raises(ValueError, match=r"the median needs data; call kernel\.resolve\(X\) first"):
        RationalQuadratic()(X)
    with pytest.raises(ValueError, match=r'bandwidth=-1 must .*"median"'):
        RationalQuadratic(-1)


def test_a_sampled_target():
    mean = mh.AdaptiveKernelMean(KERNEL).fit(X)
    assert mean.target_kind_ == "gaussian sample"
    P = mh.GaussianMixture([1.0], [X.mean(axis=0)], [OAS().fit(X).covariance_])
    drawn = mh.embed(KERNEL, P.sample(4000, random_state=0))
    assert mean.target_.distance(drawn) < 4 * np.sqrt((1 - drawn.norm() ** 2) / 4000)  # four standard errors
    assert 0 <= mean.shares_[1] <= 1
    assert mh.AdaptiveKernelMean(KERNEL + 2.0 * mh.Gaussian(1.0)).fit(X).target_kind_ == "gaussian sample"


def test_fourier_features_converge():
    features = mh.Fourier(KERNEL, 20_000, random_state=0).fit(X)
    Z = features.transform(X)
    assert_allclose(Z @ Z.T, KERNEL(X), atol=0.05)  # four standard errors of a mean of 10,000 cosines
    assert features.approximation_error_ < 0.015


def test_bags_at_both_levels():
    bags, elements = random_bags(), [mh.embed(KERNEL, bag) for bag in random_bags()]
    level2 = RationalQuadratic(shape=2.0)
    fitted = mh.DistributionKernel(KERNEL, level2=level2).fit(bags)
    distances = np.array([[f.distance(g) for f in elements] for g in elements])
    median = np.sqrt(np.median(distances[np.triu_indices(len(bags), 1)] ** 2))
    assert_allclose(fitted.level2_.bandwidth, median, rtol=1e-10)
    want = (1 + distances**2 / (4 * median**2)) ** -2.0
    assert_allclose(fitted.transform(bags), want, rtol=1e-8)
    bags, y = labelled_bags(low=5)
    assert mh.SupportMeasureClassifier(KERNEL, level2=level2).fit(bags, y).score(bags, y) > 0.9


def mean_at(case, kernel):
    return case.with_kernel(kernel).fit(X).mean_(Y)


USES = {
    **{name: partial(mean_at, case) for name, case in MEANS.items() if case.weights_only},
    "KernelPCA": lambda k: mh.KernelPCA(20, k, mean=mh.ShrunkKernelMean()).fit(X).eigenvalues_,
    "pre-images": lambda k: (lambda pca: pca.inverse_transform(pca.transform(X)))(mh.KernelPCA(20, k).fit(X)),
    "KernelCovariance": lambda k: mh.KernelCovariance(k).fit(X).operator_.hsic(),
    "Nystroem": lambda k: (lambda Z: Z @ Z.T)(mh.Nystroem(k, 40, "pivoted").fit_transform(X)),
    "mmd_test": lambda k: mh.mmd_test(X, Y + 2, kernel=k, n_resamples=19, random_state=0).statistic,
    "hsic_test": lambda k: mh.hsic_test(X, X**2, k, k, n_resamples=19, random_state=0).statistic,
    "mean_bands": lambda k: mean_bands(mh.KernelMean(k).fit(X), Y).low,
    "mmd_interval": lambda k: mmd_interval(X, Y + 2, kernel=k).standard_error,  # ends allow for rows up to a bound
}


@pytest.mark.parametrize("name", USES)
def test_it_is_used_as_the_kernel_of_scikit_learn(name):
    assert_allclose(USES[name](KERNEL), USES[name](mh.as_kernel(PEER)), rtol=1e-6, atol=1e-9)


def test_a_ball_needs_a_bound_and_a_grid_its_parameters():
    assert 0 < confidence_ball(mh.KernelMean(KERNEL).fit(X)).radius < 1
    assert mh.KernelMean(KERNEL).set_params(kernel__shape=3.0).kernel == RationalQuadratic(1.5, 3.0)
    with pytest.raises(ValueError, match='pre_image="fixed-point" needs a Gaussian kernel'):
        mh.KernelPCA(2, KERNEL, pre_image="fixed-point").fit(X).inverse_transform(X[:, :2])


@pytest.mark.parametrize("kind", [mh.Nystroem, mh.Fourier])
def test_a_sketch_is_saved_and_loaded(kind, tmp_path):
    features = kind(2.0 * KERNEL if kind is mh.Nystroem else KERNEL, 20, random_state=0).fit(X)
    sketch = mh.MeanSketch(features, second_moment=True).update(X)
    sketch.save(tmp_path / "sketch.npz")
    loaded = mh.MeanSketch.load(tmp_path / "sketch.npz", kernels=[RationalQuadratic])
    assert loaded.features.kernel_ == features.kernel_
    assert_array_equal(*(each.update(Y).state_.sums.moment for each in (loaded, sketch)))
    with pytest.raises(ValueError, match=r"its kernel is a RationalQuadratic.* kernels=\[RationalQuadratic\]"):
        mh.MeanSketch.load(tmp_path / "sketch.npz")
    with pytest.raises(ValueError, match="must hold classes of kernels"):
        mh.MeanSketch.load(tmp_path / "sketch.npz", kernels=[KERNEL])


def test_a_name_of_ours_is_not_taken_by_another_class():
    class Gaussian(RationalQuadratic):
        pass

    assert mh.kernels.encode_kernel(Gaussian(1.0)) is None
    encoded = mh.kernels.encode_kernel(mh.Gaussian(1.0))
    assert mh.kernels.decode_kernel(encoded, [Gaussian]) == mh.Gaussian(1.0)


@pytest.mark.parametrize("missing", ["evaluate", "diagonal", "profile"])
def test_an_incomplete_kernel_cannot_be_constructed(missing):
    base = mh.kernels.Radial if missing == "profile" else mh.kernels.Kernel
    methods = {name: lambda *_: None for name in ("evaluate", "diagonal") if name != missing}
    incomplete = type("Incomplete", (base,), methods if base is mh.kernels.Kernel else {})
    with pytest.raises(TypeError, match=rf"abstract.*\b{missing}"):
        incomplete()


def test_without_frequencies_the_message_leads_on():
    @dataclass(frozen=True)
    class Cauchy(mh.kernels.Radial):
        bandwidth: float = 1.0

        def profile(self, r):
            return 1 / (1 + r**2)

    with pytest.raises(
        ValueError, match=r"kernel=.*Cauchy.* is not registered with .*sample_frequencies.*; use Nystroem"
    ):
        mh.Fourier(Cauchy()).fit(X)
    assert_allclose(Cauchy()(X, Y), RationalQuadratic(np.sqrt(0.5))(X, Y), rtol=1e-12)


# ------------------------------------------------------------ kernels are known by their protocol

PACKAGE = Path(mh.__file__).parent


def nodes_of(folder):
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path.relative_to(PACKAGE), node


def test_kernels_have_no_private_attributes():
    """Names that a class of the subpackage defines, or sets on itself."""
    inside = [item for _, node in nodes_of(PACKAGE / "kernels") if isinstance(node, ast.ClassDef) for item in node.body]
    names = [item.name for item in inside if isinstance(item, ast.FunctionDef)]
    names += [item.target.id for item in inside if isinstance(item, ast.AnnAssign)]
    assert [name for name in names if name.startswith("_") and not name.startswith("__")] == []


def test_no_other_subpackage_asks_for_the_class_of_a_kernel():
    """Only whether something is a kernel at all, or one with a profile, which is the protocol itself."""
    classes, found = {"Gaussian", "Laplace", "Matern", "Linear", "Polynomial", "Sum", "Product", "Scaled"}, []
    classes |= {"Precomputed", "FromFunction", "FromGaussianProcess"}
    for path, node in nodes_of(PACKAGE):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            asked = {getattr(inner, "id", "") for inner in ast.walk(node.args[1])}
            if asked & classes and path.parts[0] != "kernels":
                found.append(f"{path}:{node.lineno}")
    assert not found


class Profile:
    bandwidth: float | str = "median"

    def profile(self, r):
        return 1 / (1 + r**2)


def test_a_check_tells_what_is_not_a_kernel():
    X = np.random.default_rng(0).normal(size=(300, 2))

    @dataclass(frozen=True)
    class Parabola(mh.kernels.Radial):
        bandwidth: float | str = "median"

        def profile(self, r):
            return 1 - r**2

    @dataclass(frozen=True)
    class OtherDiagonal(mh.Gaussian):
        def diagonal(self, X):
            return np.full(len(X), 2.0)

    @dataclass(frozen=True)
    class Flat(mh.Gaussian):
        def evaluate(self, X, Y):
            return np.ones(len(X))

    for kernel in (
        mh.Gaussian(),
        mh.Linear(),
        mh.Laplace() + 2.0 * mh.Polynomial(2),
        mh.as_kernel(lambda A, B: A @ B.T),
    ):
        assert kernel.check(X) == kernel.resolve(X)
    for kernel, message in (
        (Parabola(), r"not positive semi-definite .*smallest eigenvalue -\d"),
        (OtherDiagonal(1.0), r"diagonal\(X\) and the diagonal of evaluate\(X, X\) differ by up to 1"),
        (Flat(1.0), r"evaluate gives the shape \(150,\)"),
        (mh.as_kernel(lambda A, B: A @ (B * [1, -1]).T), "not positive semi-definite"),
        (mh.as_kernel(lambda A, B: A[:, :1] + 0 * A @ B.T), "is not symmetric"),
    ):
        with pytest.raises(ValueError, match="is not a kernel on these rows: .*" + message):
            kernel.check(X)


def test_values_of_a_wrong_shape_are_refused_wherever_the_kernel_is_used():
    @dataclass(frozen=True)
    class Difference(mh.kernels.Kernel):
        def evaluate(self, X, Y):
            return X - Y[: len(X)]

        def diagonal(self, X):
            return 1.0

    X, kernel = np.random.default_rng(0).normal(size=(30, 3)), Difference()
    uses = (
        lambda: kernel(X),
        lambda: mh.ShrunkKernelMean(kernel).fit(X),
        lambda: mh.KernelMean(kernel + mh.Linear()).fit(X).mean_(X),
        lambda: mh.mmd_test(X, X + 1, kernel),
        lambda: mh.KernelPCA(2, kernel).fit(X),
    )
    for use in uses:
        with pytest.raises(ValueError, match=r"Difference\(\) is not a kernel on .* gives the shape .*; return \("):
            use()
    with pytest.raises(ValueError, match=r"diagonal gives the shape \(\); return \(30,\)"):
        kernel.diag(X)


def test_a_kernel_that_is_no_dataclass_has_a_plain_repr():
    class Cosine(mh.kernels.Kernel):
        def __init__(self, period):
            self.period = period

        def evaluate(self, X, Y):
            return np.cos(2 * np.pi * (X - Y.T) / self.period)

        def diagonal(self, X):
            return np.ones(len(X))

    assert repr(Cosine(24.0)) == "Cosine()"
    assert "Cosine()" in repr(mh.ShrunkKernelMean(Cosine(24.0)).fit(np.arange(9.0)[:, None]))


def test_an_incomplete_radial_kernel_says_what_is_missing():
    plain = type("Plain", (Profile, mh.kernels.Radial), {})
    with pytest.raises(TypeError, match=r"Plain is not a frozen dataclass; write @dataclass\(frozen=True\) above"):
        plain()
    with pytest.raises(TypeError, match="is not a frozen dataclass"):
        dataclass(type("Loose", (Profile, mh.kernels.Radial), {"__annotations__": {"bandwidth": float}}))(1.0)
    without = {"profile": Profile.profile, "__annotations__": {"power": float}, "power": 1.0}
    with pytest.raises(TypeError, match="Without has no field bandwidth; add the line: bandwidth: float"):
        dataclass(frozen=True)(type("Without", (mh.kernels.Radial,), without))()
    scalar = {"profile": lambda self, r: 1.0, "__annotations__": {"bandwidth": float}}
    with pytest.raises(ValueError, match=r"Scalar.profile gave the shape \(\) for distances of shape \(1,\); return"):
        dataclass(frozen=True)(type("Scalar", (mh.kernels.Radial,), scalar))(1.0).diag([[0.0]])


@dataclass(frozen=True)
class OneNumber(mh.kernels.Kernel):
    """A kernel whose diagonal is a number in place of an array."""

    def evaluate(self, X, Y):
        return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2))

    def diagonal(self, X):
        return np.ones(1)


def test_a_diagonal_has_one_entry_per_row():
    with pytest.raises(ValueError, match=r"diagonal gives the shape \(1,\); return \(12,\)"):
        OneNumber().check(np.zeros((12, 2)))


def test_widths_are_multiples_of_the_median():
    rows = 3.0 * np.random.default_rng(0).normal(size=(20, 2))
    median = mh.Gaussian().resolve(rows).bandwidth
    found = [kernel.bandwidth for kernel in with_widths(mh.Gaussian(), rows, (0.5, 4.0))]
    assert_allclose(found, [0.5 * median, 4.0 * median])
    assert with_widths(mh.Gaussian(7.0), rows, (0.5, 4.0)) == [mh.Gaussian(7.0)]
