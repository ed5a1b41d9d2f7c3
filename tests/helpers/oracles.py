"""Slow, obvious versions of what the library computes fast: numpy, scipy and scikit-learn, nothing of the library."""

import math

import numpy as np
from scipy import linalg, special
from sklearn.covariance import OAS

# ---------------------------------------------------------------- kernels, k(x, y) over the last axis


def linear(x, y):
    return (x * y).sum(-1)


def polynomial(x, y, degree, constant):
    return (linear(x, y) + constant) ** degree


def gaussian(x, y, bandwidth):
    return np.exp(-((x - y) ** 2).sum(-1) / (2 * bandwidth**2))


def laplace(x, y, bandwidth):
    return np.exp(-abs(x - y).sum(-1) / bandwidth)


def matern(x, y, nu, bandwidth):
    """The Bessel form for every nu, also where a shorter form exists."""
    r = math.sqrt(2 * nu) * np.sqrt(((x - y) ** 2).sum(-1)) / bandwidth
    positive = np.where(r > 0, r, 1.0)
    value = 2 ** (1 - nu) / special.gamma(nu) * positive**nu * special.kv(nu, positive)
    return np.where(r > 0, value, 1.0)


def gram(k, X, Y):
    return k(np.asarray(X)[:, None, :], np.asarray(Y)[None, :, :])


def kernel_sum(k, X, Y, beta, gamma):
    """The form, and the sum of the absolute values of its terms, pair by pair in exact addition."""
    terms = [b * c * k(x, y) for x, b in zip(X, beta, strict=True) for y, c in zip(Y, gamma, strict=True)]
    return math.fsum(terms), math.fsum(map(abs, terms))


def median_of_pairs(X, distance):
    values = sorted(distance(X[i], X[j]) for i in range(len(X)) for j in range(i + 1, len(X)))
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def gaussian_median_bandwidth(X):
    return math.sqrt(median_of_pairs(X, lambda x, y: sum((x - y) ** 2)))


def laplace_median_bandwidth(X):
    return median_of_pairs(X, lambda x, y: sum(abs(x - y)))


def centred_gram(L, K, weights):
    """<phi(z) - mu, phi(x_j) - mu>, rows z of L = k(z, x_j), mu = sum_j weights_j phi(x_j)."""
    return L - (K @ weights)[None, :] - (L @ weights)[:, None] + weights @ K @ weights


# ---------------------------------------------------------------- weights, and leave-one-out by refitting


def fixed_point_preimage(k, X, gamma, steps=100):
    """Mika's iteration toward the largest value of f = sum_i gamma_i k(x_i, .), from the row where f is largest."""
    z = X[np.argmax([sum(g * k(x, y) for g, x in zip(gamma, X, strict=True)) for y in X])]
    for _ in range(steps):
        pull = np.array([g * k(x, z) for g, x in zip(gamma, X, strict=True)])
        if pull.sum() <= np.finfo(float).eps * np.abs(pull).sum():
            return z
        z = pull @ X / pull.sum()
    return z


def uniform(n):
    return np.full(n, 1 / n)


def tikhonov_weights(K, lam):
    n = len(K)
    if lam == 0:
        return uniform(n)
    if np.isinf(lam):
        return np.zeros(n)
    return linalg.solve(K + lam * np.eye(n), K @ uniform(n))


def refits(K, weights_of):
    """Column i holds the weights of the fit that never saw row i, with a zero at i."""
    n = len(K)
    B = np.zeros((n, n))
    for i in range(n):
        keep = np.arange(n) != i
        B[keep, i] = weights_of(K[np.ix_(keep, keep)])
    return B


def residuals(K, B):
    """||phi_i - sum_j B_ji phi_j||^2, one for each i."""
    R = B - np.eye(len(K))
    return np.array([r @ K @ r for r in R.T])


def pieces(K, B):
    """(p, Q): the score of c times the fits in the columns of B is mean_diag - 2 c p + c^2 Q."""
    return np.mean(np.diag(K @ B)), np.mean([b @ K @ b for b in B.T])


def scaled_score(K, p, Q, scale=1.0):
    if isinstance(scale, str):
        safe = np.where(Q > 0, Q, 1.0)
        scale = np.clip(p / safe, 0.0, 1.0)
    return np.mean(np.diag(K)) - 2 * scale * p + scale**2 * Q


def simple_score(K, alpha):
    return residuals(K, refits(K, lambda rest: (1 - alpha) * uniform(len(rest)))).mean()


def simple_shrinkage(K):
    """alpha* of Theorem 3 before it is clipped to [0, 1]."""
    n, mean_diag = len(K), np.mean(np.diag(K))
    mean_offdiag = (K.sum() - np.trace(K)) / (n * (n - 1))
    return (mean_diag - mean_offdiag) / (mean_diag + (n - 2) * mean_offdiag)


def deletion_refits(K, lam):
    return refits(K, lambda rest: tikhonov_weights(rest, lam))


def deletion_score(K, lam):
    return residuals(K, deletion_refits(K, lam)).mean()


def theorem4_fits(K, lam):
    """The lemma: the loss of x_i is dropped, phi(x_i) stays in the span. K may be singular."""
    n = len(K)
    others = (np.ones((n, n)) - np.eye(n)) / n
    if lam == 0:
        return others * n / (n - 1)
    if np.isinf(lam):
        return np.zeros((n, n))
    return np.column_stack([linalg.solve((n - 1) / n * K + lam * np.eye(n), K @ b) for b in others.T])


def theorem4_score(K, lam):
    return residuals(K, theorem4_fits(K, lam)).mean()


def theorem4_literal(K, lam):
    """The printed formula; it inverts K."""
    n = len(K)
    inner = linalg.inv(K - K @ linalg.inv(K + lam * np.eye(n)) @ K / n)
    C = inner @ K @ inner
    differences = [K @ tikhonov_weights(K, lam) - K[:, i] for i in range(n)]
    return np.mean([d @ C @ d for d in differences])


# ---------------------------------------------------------------- spectral filters, lam in Gram units


def tikhonov_factor(g, lam):
    g, lam = np.broadcast_arrays(np.asarray(g, dtype=float), np.asarray(lam, dtype=float))
    finite = np.isfinite(lam) & (lam > 0)
    safe = np.where(finite, lam, 1.0)
    return np.where(finite, g / (g + safe), np.where(lam == 0, 1.0, 0.0))


def iterated_tikhonov_factor(g, lam, n_iter):
    return 1 - (1 - tikhonov_factor(g, lam)) ** n_iter


def truncated_factor(g, lam):
    return (g >= lam).astype(float)


def eigenpairs(K):
    g, U = np.linalg.eigh(K)
    return np.clip(g, 0, None), U


def filtered_weights(K, factor):
    g, U = eigenpairs(K)
    return U @ (factor(g) * (U.T @ uniform(len(K))))


def landweber_weights(K, step, n_steps):
    target, b = uniform(len(K)), np.zeros(len(K))
    for _ in range(n_steps):
        b = b + step * K @ (target - b)
    return b


def nu_method_weights(K, step, n_steps, nu):
    target, previous, b = uniform(len(K)), np.zeros(len(K)), np.zeros(len(K))
    for t in range(1, n_steps + 1):
        if t == 1:
            u, w = 0.0, (4 * nu + 2) / (4 * nu + 1)
        else:
            common = (t + 2 * nu - 1) * (2 * t + 4 * nu - 1)
            u = (t - 1) * (2 * t - 3) * (2 * t + 2 * nu - 1) / (common * (2 * t + 2 * nu - 3))
            w = 4 * (2 * t + 2 * nu - 1) * (t + nu - 1) / common
        previous, b = b, b + u * (b - previous) + w * step * K @ (target - b)
    return b


def nu_method_residual(d, n_steps, nu):
    """1 - h on eigenvalues d in [0, 1]: a Jacobi polynomial that is one at d = 0."""
    alpha, beta = 2 * nu - 0.5, -0.5
    values = special.eval_jacobi(n_steps, alpha, beta, 1 - 2 * np.asarray(d))
    return values / special.eval_jacobi(n_steps, alpha, beta, 1.0)


# ---------------------------------------------------------------- scores on a fine grid, refits kept


def deletion_pieces_on(K, lams, factor=tikhonov_factor):
    """p and Q of ``pieces`` for every lam: delete row i, decompose, filter."""
    n, p, Q = len(K), 0.0, 0.0
    for i in range(n):
        keep = np.arange(n) != i
        g, U = eigenpairs(K[np.ix_(keep, keep)])
        coefficients = factor(g[None, :], np.asarray(lams)[:, None]) * (U.T @ uniform(n - 1))
        p = p + coefficients @ (U.T @ K[keep, i]) / n
        Q = Q + coefficients**2 @ g / n
    return p, Q


def theorem4_pieces_on(K, lams):
    n, p, Q = len(K), 0.0, 0.0
    g, U = eigenpairs(K)
    for i in range(n):
        others = U.T @ np.where(np.arange(n) == i, 0.0, 1 / n)
        ridge = n / (n - 1) * np.asarray(lams)[:, None]
        coefficients = n / (n - 1) * tikhonov_factor(g[None, :], ridge) * others
        p = p + coefficients @ (g * U[i]) / n
        Q = Q + coefficients**2 @ g / n
    return p, Q


def fine_grid(K, size=2001):
    top = np.linalg.eigvalsh(K)[-1]
    return np.concatenate([[0.0], top * np.logspace(-9, 5, size), [np.inf]])


def grid_minimum(K, pieces_on, scale=1.0, size=2001):
    p, Q = pieces_on(K, fine_grid(K, size))
    return scaled_score(K, p, Q, scale).min()


def grid_argmin(K, pieces_on):
    """The best λ of the fine grid, or, between its limits, of a finer one between the neighbours."""
    grid = fine_grid(K)
    best = np.argmin(scaled_score(K, *pieces_on(K, grid)))
    if 1 < best < len(grid) - 2:
        grid = np.geomspace(grid[best - 1], grid[best + 1], 201)
        best = np.argmin(scaled_score(K, *pieces_on(K, grid)))
    return grid[best]


# ---------------------------------------------------------------- expectations


def sample_mixture(weights, means, covariances, n, rng):
    """Draws by symmetric roots of the covariances, which may be singular."""
    means, roots = np.asarray(means), []
    for covariance in covariances:
        g, U = eigenpairs(np.asarray(covariance))
        roots.append(U * np.sqrt(g))
    which = rng.choice(len(weights), size=n, p=weights)
    noise = rng.standard_normal((n, means.shape[1]))
    return means[which] + np.einsum("nij,nj->ni", np.array(roots)[which], noise)


def monte_carlo(values):
    return np.mean(values), np.std(values, ddof=1) / math.sqrt(len(values))


def gauss_hermite_mixture(weights, means, covariances, order=8):
    """Nodes and weights that integrate a polynomial of degree < 2 * order exactly under the mixture."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(order)
    dimension = np.shape(means)[1]
    grid = np.stack(np.meshgrid(*[nodes] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    masses = np.stack(np.meshgrid(*[mass / mass.sum()] * dimension, indexing="ij"), axis=-1)
    masses = masses.reshape(-1, dimension).prod(axis=1)
    points = []
    for mean, covariance in zip(means, covariances, strict=True):
        g, U = eigenpairs(np.asarray(covariance))
        points.append(np.asarray(mean) + grid @ (U * np.sqrt(g)).T)
    return np.concatenate(points), np.concatenate([w * masses for w in weights])


def james_stein_risk(theta, variance, n, repeats, rng):
    """Monte Carlo risk of James and Stein's estimator about the origin, with its standard error."""
    theta = np.asarray(theta, dtype=float)
    d = len(theta)
    averages = theta + rng.standard_normal((repeats, d)) * math.sqrt(variance / n)
    factors = 1 - (d - 2) * variance / (n * (averages**2).sum(axis=1))
    return monte_carlo(((factors[:, None] * averages - theta) ** 2).sum(axis=1))


def normal_sample(mean, covariance, base):
    """Points of a standard normal sample as a sample of N(mean, covariance), by the symmetric root."""
    g, U = eigenpairs(np.asarray(covariance))
    return mean + base @ (U * np.sqrt(g)) @ U.T


def oas_covariance(X):
    """Covariance by scikit-learn's OAS; that of a single row is 0."""
    return OAS().fit(X).covariance_ if len(X) > 1 else np.zeros((X.shape[1],) * 2)
