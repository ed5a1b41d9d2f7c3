"""Support measure machines: support vector machines on distributions, given as bags of rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, OutlierMixin

from muhat._support.types import Array
from muhat._support.validation import check_number, unchanged_on_error, warn_caller
from muhat.bags.data import check_bag_weights, check_labels
from muhat.bags.distribution_kernel import EmbedsBags, Level2
from muhat.bags.moments import RIDGE
from muhat.features.base import BaseFeatures
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.means.base import BaseKernelMean

MAX_RATIO_OF_SIZES = 3
"""Largest ratio of two bags' sizes for which the one-class machine gives no warning: the variances of their
means differ by as much."""


class _SupportMeasureMachine(EmbedsBags):
    """Base of both: a support vector machine of scikit-learn on the Gram matrix of the bags.

    The parameters of the embedding are those of :class:`DistributionKernel`. Each machine repeats them, because
    scikit-learn reads parameters from the signature of the class.
    """

    def _fit_machine(self, machine: Any, bags: Any, target: Any, sample_weight: Any) -> Self:
        """Fit a machine with checked parameters to checked targets."""
        K = self._fit_gram(bags)
        weights = None if sample_weight is None else check_bag_weights(sample_weight, len(K))
        self._machine = machine.fit(K, target, sample_weight=weights)
        self.support_ = self._machine.support_
        return self

    def predict(self, bags: Any) -> NDArray[Any]:
        """Predict each bag."""
        K = self._gram(bags)
        return self._machine.predict(K)


class SupportMeasureClassifier(ClassifierMixin, _SupportMeasureMachine):
    r"""Support measure machine (SMM): a support vector classifier of distributions.

    Each bag stands for its mean element :math:`\hat\mu_i`, and the level-2 kernel compares those; see
    :class:`DistributionKernel`. Several classes are handled one against one, as ``sklearn.svm.SVC`` does.

    Parameters
    ----------
    kernel, mean, whiten, features, ridge, pool, memory
        The embedding of bags; see :class:`DistributionKernel`.
    level2 : "linear" or Kernel, default Gaussian()
        The kernel between mean elements; "median" is that of the distances between the bags of fit.
    C : float > 0, default 1.0
        The smaller, the stronger the regularisation.
    class_weight : dict or "balanced", optional
        Factors of C for each class, as in ``sklearn.svm.SVC``; "balanced" gives rare classes more.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    support_ : array
        Numbers of the bags that are support measures.
    kernel_, level2_ : Kernel
        With bandwidths as numbers; ``level2_`` may be "linear".
    n_features_in_ : int
        Columns of the bags.

    See Also
    --------
    DistributionRidgeClassifier : Searches nothing, allows for the size of a bag, and has probabilities.
    DistributionKernel : The Gram matrix of the bags, for any estimator with a precomputed kernel.

    References
    ----------
    K. Muandet, K. Fukumizu, F. Dinuzzo, B. Schölkopf. Learning from distributions via support measure machines.
    NIPS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> bags = [rng.normal(scale=1 + label, size=(rng.integers(5, 30), 3)) for label in y]  # all centred at 0
    >>> mh.SupportMeasureClassifier().fit(bags[:30], y[:30]).score(bags[30:], y[30:])
    1.0
    """

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        mean: BaseKernelMean | None = None,
        level2: Level2 = Gaussian(),
        C: float = 1.0,
        *,
        class_weight: Any = None,
        whiten: bool = False,
        features: BaseFeatures | None = None,
        ridge: float = RIDGE,
        pool: bool = False,
        memory: Any = None,
    ) -> None:
        super().__init__(kernel, mean, level2, whiten, features, ridge=ridge, pool=pool, memory=memory)
        self.C = C
        self.class_weight = class_weight

    @unchanged_on_error
    def fit(self, bags: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine to bags, one matrix of rows each, with classes y; ``sample_weight`` holds factors of C."""
        from sklearn.svm import SVC  # takes long to import

        C = check_number("C", self.C, low=0, open_low=True)
        labels = check_labels(self, bags, y)
        self.classes_ = np.unique(labels)
        machine = SVC(kernel="precomputed", C=C, class_weight=self.class_weight)
        return self._fit_machine(machine, bags, labels, sample_weight)

    def decision_function(self, bags: Any) -> Array:
        """Return decision values, positive on the side of the second class; a column per class for three or more."""
        K = self._gram(bags)
        return self._machine.decision_function(K)


class OneClassSupportMeasureMachine(OutlierMixin, _SupportMeasureMachine):
    r"""One-class support measure machine (OCSMM): finds bags unlike those of ``fit`` (group anomalies).

    With a linear level-2 kernel the scores grow with the norm of a mean element, and so with the concentration of
    a bag: bags more concentrated than the normal ones then look normal. A Gaussian level-2 kernel has no such bias.

    For bags of similar sizes. The mean of a small bag is noisy and lies far from the others, so small bags are called
    anomalous; where sizes differ by more than three times, the machine warns. :class:`GroupAnomalyDetector` allows
    for the size of a bag.

    Parameters
    ----------
    kernel, mean, whiten, features, ridge, pool, memory
        The embedding of bags; see :class:`DistributionKernel`.
    level2 : "linear" or Kernel, default Gaussian()
        The kernel between mean elements.
    nu : float in (0, 1], default 0.1
        Upper bound on the share of training bags left outside, lower bound on the share of support measures.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``.
    support_, kernel_, level2_, n_features_in_
        See :class:`SupportMeasureClassifier`.

    See Also
    --------
    GroupAnomalyDetector : Allows for the size of a bag, and has p-values and explanations.

    References
    ----------
    K. Muandet, B. Schölkopf. One-class support measure machines for group anomaly detection. UAI 2013.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> normal = [rng.normal(size=(20, 2)) for _ in range(50)]
    >>> odd = [np.repeat(rng.normal(size=(20, 1)), 2, axis=1) for _ in range(3)]  # normal rows, odd together
    >>> mh.OneClassSupportMeasureMachine().fit(normal).predict(odd)
    array([-1, -1, -1])
    """

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        mean: BaseKernelMean | None = None,
        level2: Level2 = Gaussian(),
        nu: float = 0.1,
        *,
        whiten: bool = False,
        features: BaseFeatures | None = None,
        ridge: float = RIDGE,
        pool: bool = False,
        memory: Any = None,
    ) -> None:
        super().__init__(kernel, mean, level2, whiten, features, ridge=ridge, pool=pool, memory=memory)
        self.nu = nu

    @unchanged_on_error
    def fit(self, bags: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the machine to normal bags, one matrix of rows each; ``sample_weight`` holds factors of their cost."""
        from sklearn.svm import OneClassSVM

        nu = check_number("nu", self.nu, low=0, high=1, open_low=True)
        self._fit_machine(OneClassSVM(kernel="precomputed", nu=nu), bags, None, sample_weight)
        self.offset_ = float(self._machine.offset_[0])
        smallest, largest = min(map(len, bags)), max(map(len, bags))
        if largest > MAX_RATIO_OF_SIZES * smallest:
            warn_caller(
                f"bags have {smallest} to {largest} rows, and small bags look odd to this machine because they are "
                f"small. Use GroupAnomalyDetector, which allows for the size of a bag, or bags of similar sizes.",
            )
        return self

    def score_samples(self, bags: Any) -> Array:
        """Return how normal each bag is, the larger the more."""
        K = self._gram(bags)
        return self._machine.score_samples(K)

    def decision_function(self, bags: Any) -> Array:
        """Return ``score_samples`` less ``offset_``: negative for anomalous bags."""
        return self.score_samples(bags) - self.offset_
