r"""The empirical Bernstein radius: a bound of the distance between a sample mean and the mean in a Hilbert space."""

from __future__ import annotations

import numpy as np


def bernstein_radius(n: float, variance: float, squared_diameter: float, delta: float) -> float:
    r"""The radius t with :math:`P(\|\hat\mu - \mu\| > t) \le \delta` for n independent terms of bounded distance.

    With D the diameter, V the unbiased variance of the sample and :math:`L = \log(4/\delta)`,

    .. math:: t = \frac{DL}{3n} + \sqrt{\frac{D^2L^2}{9n^2} + \frac{2\sigma_+^2L}{n}}, \qquad
              \sigma_+ = \sqrt{V + \frac{D^2 \log(2/\delta)}n} + D\sqrt{\frac{\log(2/\delta)}n}.

    It is at most D: both means lie in the convex hull of the terms.

    References
    ----------
    Pinelis (1994). Optimum bounds for the distributions of martingales in Banach spaces. Annals of Probability 22.
    Maurer, Pontil (2009). Empirical Bernstein bounds and sample variance penalization. COLT.
    """
    # Half of δ for the variance: n V / D² is self-bounding, so that σ² <= V + 2σD √(log(2/δ)/n), solved for σ.
    slack = squared_diameter * np.log(2.0 / delta) / n
    sigma = np.sqrt(variance + slack) + np.sqrt(slack)
    # The other half for Pinelis' inequality, P(‖μ̂ − μ‖ >= t) <= 2 exp(−n t² / (2σ² + 2Dt/3)), solved for t.
    linear = np.sqrt(squared_diameter) * np.log(4.0 / delta) / (3.0 * n)
    radius = linear + np.sqrt(linear**2 + 2.0 * sigma**2 * np.log(4.0 / delta) / n)
    return float(min(radius, np.sqrt(squared_diameter)))
