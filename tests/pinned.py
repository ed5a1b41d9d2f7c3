"""The answers of this version: calls whose numbers come from a search, a draw or a long formula.

``python tests/pinned.py`` computes them and writes ``tests/data/pinned.json``, which ``test_pinned.py`` compares. Laws
say what an answer must be like; this file says that it is the same as before, so that a change of numbers is meant and
stands in the change log.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from drawings import numbers_of, recorded
from made_rows import made_rows

import muhat as mh
from muhat.command_line import main
from muhat.reproduce.claims.base import judge
from muhat.reproduce.experiment import Plan
from muhat.reproduce.experiments import figure1, figure2, kernel_choice, normalisation, theorems
from muhat.reproduce.registry import CLAIMS, EXPERIMENTS
from muhat.reproduce.report import VERDICTS, claims_table
from muhat.reproduce.summary import summary_lines

STORED = Path(__file__).parent / "data" / "pinned.json"


def rows(n, d=3, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1, d + 1) + shift


X, Y, AT = rows(24), rows(18, seed=1, shift=0.7), rows(3, seed=2)
KERNELS = [mh.Gaussian(), mh.Linear(), mh.Polynomial(2), mh.Polynomial(3), mh.Laplace(), mh.Matern(2.5)]
BAGS = [rows(n, 2, seed=n, shift=n % 3) for n in range(2, 26)]
TARGETS = np.array([len(bag) + bag.mean() for bag in BAGS])


# ---------------------------------------------------------------- calls


def of_means():
    """Weights, scores and values of every estimator of a mean."""
    estimators = [
        *(mean(kernel) for kernel in KERNELS for mean in (mh.ShrunkKernelMean, mh.SpectralKernelMean)),
        *(mh.AdaptiveKernelMean(kernel) for kernel in KERNELS),
        *(mh.SpectralKernelMean(filter=f()) for f in (mh.Landweber, mh.TruncatedSVD, mh.NuMethod, mh.IteratedTikhonov)),
        mh.SpectralKernelMean(lam="theorem4"),
        mh.RobustKernelMean(),
        mh.RobustKernelMean(loss="hampel", shrinkage="loo"),
        mh.MedianOfMeans(random_state=0, shrinkage="loo"),
        mh.ConstrainedKernelMean(),
        mh.ConstrainedKernelMean(shrinkage=0.5, nonnegative=False),
    ]
    for estimator in estimators:
        fitted = estimator.fit(X)
        yield repr(estimator), [fitted.weights_, fitted.mean_(AT), fitted.mean_.norm(), fitted.loo_score_]
    for name, scale in (("BlendedSample", False), ("BlendedSample(scale=True)", True)):
        blended = mh.BlendedSample(scale=scale, n_resamples=5, random_state=0).fit(X)
        yield name, [blended.share_, blended.quantile(0.3)]
        drawn = blended.sample(40, random_state=0), blended.expect(lambda Z: np.exp(Z.sum(axis=1) / 9))
        yield f"{name}: draws", [*drawn, blended.probability(lambda Z: Z[:, 0] > 0.5, return_std=True)]
    wide = mh.BlendedSample(n_resamples=5, random_state=0).fit(rows(6, 30))
    yield "BlendedSample of few rows: draws", [wide.sample(9, random_state=0), wide.expect(lambda Z: np.abs(Z))]
    yield "james_stein", mh.james_stein(AT, 0.5)
    P = mh.paper_mixture(3, random_state=0)
    yield "paper_mixture", [P.sample(4, random_state=0), P.log_density(AT)]
    yield "oracle_shrinkage", list(mh.oracle_shrinkage(mh.Gaussian(2.0), P, 20))


def of_inference():
    """Tests, intervals and bands."""
    strata = np.arange(len(X) + len(Y)) % 2
    options = {
        "": {},
        "unbiased": {"unbiased": True, "kernel": mh.Gaussian()},
        "list": {"kernel": [mh.Gaussian(), mh.Laplace()]},
        "spectral": {"statistic": "spectral", "kernel": mh.Gaussian()},
        "shrunk": {"mean": mh.ShrunkKernelMean(), "kernel": mh.Gaussian()},
        "strata": {"strata": strata},
        "scale": {"scale": "columns", "kernel": mh.Matern()},
    }
    for name, chosen in options.items():
        found = mh.mmd_test(X, Y, n_resamples=39, random_state=0, **chosen)
        yield f"mmd_test {name}", [found.statistic, found.pvalue, found.null_distribution, found.witness(AT)]
        yield f"mmd_test {name}: its words", str(found)
    for name, chosen in {"": {}, "unbiased": {"unbiased": True, "kernel_x": mh.Gaussian()}}.items():
        found = mh.hsic_test(X[:, :2], X[:, 2:] ** 2 + X[:, :1], n_resamples=39, random_state=0, **chosen)
        yield f"hsic_test {name}", [found.statistic, found.pvalue, found.null_distribution, str(found)]
    for method in ("jackknife", "bootstrap"):
        found = mh.mmd_interval(X, Y, method=method, n_resamples=39, random_state=0)
        yield f"mmd_interval {method}", [found.low, found.high, found.estimate, found.standard_error]
        bands = mh.mean_bands(mh.ShrunkKernelMean().fit(X), AT, method=method, n_resamples=39, random_state=0)
        yield f"mean_bands {method}", [bands.low, bands.high]
    found = mh.mmd_difference_interval(X, Y, rows(20, seed=3))
    yield "mmd_difference_interval", [found.low, found.high, found.estimate]
    for method in ("bernstein", "bootstrap"):
        ball = mh.confidence_ball(mh.KernelMean().fit(X), method=method, n_resamples=39, random_state=0)
        yield f"confidence_ball {method}", ball.radius
    yield "mean_error", mh.mean_error(mh.SpectralKernelMean().fit(X))


def default_tests():
    """Default tests: of few and of many rows, of numbers and of categories."""
    rng = np.random.default_rng(7)
    many = rng.normal(size=(6001, 2)), 1.03 * rng.normal(size=(6000, 2))
    pairs = rng.normal(size=(3001, 2))
    frames = [
        pd.DataFrame({"x": rng.normal(size=n) + shift, "y": rng.gamma(2.0, size=n), "kind": rng.choice(kinds, n)})
        for n, shift, kinds in ((50, 0.0, list("abc")), (40, 0.9, list("abd")))
    ]
    strata = np.arange(90) % 3
    options = {"n_resamples": 39, "random_state": 0}
    return {
        "mmd_test of many rows": mh.mmd_test(*many, **options),
        "mmd_test of spread": mh.mmd_test(X, 3 * Y, **options),
        "mmd_test of frames": mh.mmd_test(*frames, **options),
        "mmd_test of frames in strata": mh.mmd_test(*frames, strata=strata, **options),
        "hsic_test of many pairs": mh.hsic_test(pairs, pairs[:, :1] ** 2 + rng.normal(size=(3001, 1)), **options),
        "hsic_test of a line": mh.hsic_test(X[:, :1], X + rng.normal(size=X.shape), **options),
        "hsic_test of frames": mh.hsic_test(frames[0][["x", "y"]], frames[0][["kind"]], **options),
        "hsic_test in strata": mh.hsic_test(pairs[:90], pairs[:90] ** 2, strata=strata, **options),
    }


def of_default_tests():
    """What they find, by which components, and in which words."""
    for name, found in default_tests().items():
        parts = [
            [part.name, part.group, part.pvalue, part.share, part.evidence, part.words] for part in found.components
        ]
        yield name, [found.statistic, found.pvalue, found.null_distribution, str(found), found.summary, parts]


def of_bags():
    """Groups: kernels between them, priors, predictions and p-values."""
    for name, chosen in {
        "": {},
        "pool": {"pool": True, "level2": mh.Gaussian()},
        "whiten": {"whiten": True},
        "mean": {"mean": mh.ShrunkKernelMean()},
        "features": {"features": mh.Nystroem(n_components=8, random_state=0)},
    }.items():
        kernel = mh.DistributionKernel(**chosen)
        yield f"DistributionKernel {name}", [kernel.fit_transform(BAGS), kernel.transform(BAGS[:3])]
    prior = mh.BagPrior(random_state=0).fit(BAGS)
    means = [mean(AT[:, :2]) for mean in prior.means(BAGS[:3])]
    yield "BagPrior", [prior.transform(BAGS), prior.log_odds(BAGS), prior.log_odds(BAGS[:4], BAGS[4:8]), *means]
    for weighted in (True, False):
        ridge = mh.DistributionRidge(random_state=0, weight_by_size=weighted).fit(BAGS, TARGETS)
        yield f"DistributionRidge {weighted}", list(ridge.predict(BAGS[:5], return_std=True))
    detector = mh.GroupAnomalyDetector(random_state=0).fit(BAGS)
    yield "GroupAnomalyDetector", [detector.score_samples(BAGS), detector.p_values([3 * bag for bag in BAGS])]
    yield "SupportMeasureClassifier", mh.SupportMeasureClassifier().fit(BAGS, TARGETS > 14).decision_function(BAGS)
    yield "SupportMeasureRegressor", mh.SupportMeasureRegressor(C=10).fit(BAGS, TARGETS).predict(BAGS)
    yield "OneClass", mh.OneClassSupportMeasureMachine(nu=0.3).fit(BAGS).decision_function(BAGS)
    yield "pooled_means", [mean(AT[:, :2]) for mean in mh.pooled_means(BAGS[:4])]


def of_operators_and_features():
    """Kernel PCA, covariance operators, matched mixtures, features and sketches."""
    for name, chosen in {"": {}, "fixed-point": {"pre_image": "fixed-point", "mean": mh.ShrunkKernelMean()}}.items():
        pca = mh.KernelPCA(2, **chosen).fit(X)
        scores = pca.transform(AT)
        yield (
            f"KernelPCA {name}",
            [pca.eigenvalues_, np.abs(scores), pca.reconstruction_error(AT), pca.inverse_transform(scores)],
        )
    covariance = mh.KernelCovariance(mean=mh.ShrunkKernelMean()).fit(X, Y=X**2)
    yield "KernelCovariance", [covariance.weights_, covariance.operator_.norm()]
    for kind in ("spherical", "diag"):
        matched = mh.MatchedGaussianMixture(2, n_init=2, random_state=0, covariance_type=kind).fit(X)
        yield f"MatchedGaussianMixture {kind}", [matched.objective_, matched.score(X)]
    for landmarks in ("uniform", "k-means++", "pivoted"):
        features = mh.Nystroem(n_components=6, landmarks=landmarks, random_state=0)
        mean = mh.SpectralKernelMean(features=features).fit(X)
        yield f"Nystroem {landmarks}", [mean.mean_(AT), mean.approximation_error_]
    for orthogonal in (True, False):
        fourier = mh.Fourier(mh.Matern(), n_components=16, orthogonal=orthogonal, random_state=0).fit(X)
        yield f"Fourier {orthogonal}", fourier.transform(AT)
    sketch = mh.MeanSketch(mh.Nystroem(n_components=5, random_state=0).fit(X), True, reservoir_size=4)
    yield "MeanSketch", sketch.update(X).update(Y).mean_element()(AT)


def of_monitors():
    """Thresholds, and the alarm of a stream that changes."""
    stream = np.concatenate([rows(40, seed=5), rows(40, seed=6, shift=3.0)])
    for block in (1, 3):
        monitor = mh.DriftMonitor(300, n_simulations=100, block_length=block, random_state=0).fit(rows(60, seed=4))
        monitor.update(stream)
        found = monitor.result_
        yield (
            f"DriftMonitor {block}",
            [found.row, found.since, found.window, found.score, found.threshold, dict(found.columns)],
        )
        yield f"DriftMonitor {block}: witness", monitor.witness_(AT)
    settings = {
        "scaled": {"scale": True, "windows": [1, 4, 9]},
        "one kernel": {"kernel": mh.Laplace(2.0)},
        "features": {"features": mh.Nystroem(mh.Gaussian(2.0), n_components=9, random_state=0)},
        "blocks of a long reference": {
            "block_length": 3,
            "run_length": 20_500,
            "windows": [1, 5],
            "kernel": mh.Gaussian(),
        },
    }
    for name, chosen in settings.items():
        n = 2050 if "run_length" in chosen else 60
        monitor = mh.DriftMonitor(**{"run_length": 300, "n_simulations": 100, "random_state": 0} | chosen)
        monitor.fit(rows(n, seed=4)).update(rows(90, seed=5))
        yield f"scores and thresholds, {name}", [monitor.windows_, monitor.threshold_, *monitor.recent_scores()]


def write_tables(folder):
    """Two tables of numbers, texts, dates and gaps."""
    paths = [str(Path(folder) / f"{name}.csv") for name in "ab"]
    for path, shift in zip(paths, (0, 1), strict=True):
        rng = np.random.default_rng(shift)
        lines = ["number,day,colour,gaps,both"]
        for i in range(60):
            x, y, z = rng.normal(size=3)
            colour = ["red", "green", "blue", ""][int(rng.integers(4 - shift))]
            gap = "" if rng.random() < 0.1 + 0.3 * shift else f"{y + 0.5 * shift:.4f}"
            day = np.datetime64("2026-01-01") + np.timedelta64(7 * i + 50 * shift, "D")
            lines.append(f"{x:.4f},{day},{colour},{gap},{(x if shift else y) + 0.2 * z:.4f}")
        Path(path).write_text("\n".join(lines) + "\n")
    return paths


def write_changes(folder):
    """Files of a table, of the same again, of one in which each column changed in its own way, and of other columns."""
    rng, n = np.random.default_rng(2), 150
    days = np.datetime64("2025-03-01") + np.arange(n).astype("timedelta64[D]")
    base = {
        "level": rng.normal(10.0, 1.0, n),
        "spread": rng.normal(0.0, 1.0, n),
        "tail": rng.normal(0.0, 1.0, n),
        "kind": rng.choice(["apple", "pear", "plum", "a very long name of a fruit"], n, p=[0.4, 0.3, 0.2, 0.1]),
        "day": days,
        "gaps": rng.normal(5.0, 1.0, n),
        "same": rng.normal(0.0, 1.0, n),
        "constant": np.ones(n),
        "count": rng.poisson(3.0, n),
    }
    changed = base | {
        "level": base["level"] + 2.0,
        "spread": 3.0 * base["spread"],
        "tail": np.where(np.arange(n) % 10, base["tail"], 8.0),
        "kind": np.where(np.arange(n) % 3, base["kind"], "fig"),
        "day": days + np.timedelta64(200, "D"),
        "gaps": np.where(np.arange(n) % 3, base["gaps"], np.nan),
        "same": rng.normal(0.0, 1.0, n),
    }
    other = {name: changed[name] for name in ("kind", "level", "count")} | {"new": rng.normal(size=n)}
    paths = []
    for name, table in {"base": base, "again": base, "changed": changed, "other": other}.items():
        lines = [",".join(map(str, row)).replace("nan", "") for row in zip(*table.values(), strict=True)]
        paths.append(str(Path(folder) / f"{name}.csv"))
        Path(paths[-1]).write_text("\n".join([",".join(table), *lines]) + "\n")
    return paths


def said(command, folder):
    """The code that the command ends with, and what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(command)
    return code, out.getvalue().replace(folder, "FOLDER")


def of_files():
    """What the commands say of two tables of numbers, texts, dates and gaps."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_tables(folder)
        commands = [
            ["compare", *paths, "--resamples", "99", "--json"],
            ["compare", *paths, "--resamples", "99"],
            ["compare", *paths, "--resamples", "19", "--raw", "--kernel", "laplace", "--json"],
            ["describe", paths[0], "--json"],
            ["describe", paths[1], "--rows", "30"],
            ["watch", *paths, "--run-length", "200", "--columns", "number", "both", "--json"],
        ]
        base, again, changed, other = write_changes(folder)
        commands += [
            ["compare", base, changed, "--resamples", "99"],
            ["compare", base, changed, "--resamples", "99", "--json"],
            ["compare", base, again, "--resamples", "19"],
            ["compare", base, other, "--resamples", "19"],
            ["compare", base, changed, "--resamples", "19", "--columns", "kind", "day"],
            ["compare", base, changed, "--resamples", "19", "--columns", "level"],
            ["describe", changed],
            ["describe", changed, "--json"],
            ["watch", base, changed, "--run-length", "500", "--columns", "level", "spread"],
            ["watch", base, again, "--run-length", "500", "--columns", "same", "count"],
        ]
        for command in commands:
            code, text = said(command, folder)
            as_json = "--json" in command
            if command[0] == "watch":
                found = [json.loads(line) if as_json else line for line in text.splitlines()]
            else:
                found = json.loads(text) if as_json else text.splitlines()
            yield " ".join(command).replace(folder, "FOLDER"), [code, found]


def of_pages():
    """Words, bars and pictures of the pages that the commands write."""
    with tempfile.TemporaryDirectory() as folder:
        paths, page = write_tables(folder), Path(folder) / "page.html"
        *alike, changed, _ = write_changes(folder)
        for command in (
            ["compare", *paths, "--resamples", "99"],
            ["compare", *alike, "--resamples", "19"],
            ["describe", paths[0]],
            ["watch", *paths, "--run-length", "200", "--columns", "number", "both"],
            ["watch", alike[0], changed, "--run-length", "500", "--columns", "level", "spread"],
        ):
            with recorded() as pictures:
                said([*command, "--html", str(page)], folder)
            text = re.sub(r"<(style|script)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            bars = [float(number) for path in re.findall(r' d="(M[^"]*z)"/>', text) for number in numbers_in(path)]
            words = re.sub(r"<svg\b.*?</svg>", "", text, flags=re.DOTALL)
            words = re.sub(r"muhat \d+\.\d+\.\d+\.", "muhat.", words)  # the version of the installed package
            words = [part.strip() for part in re.split(r"<[^>]*>", words) if part.strip()]
            name = " ".join(command).replace(folder, "FOLDER")
            yield f"page of {name}", [words, np.array(bars)]
            yield f"marked rows of {name}", text.count('<tr class="found">')
            yield f"pictures of {name}", [pictures, re.findall(r'role="img" aria-label="([^"]*)"', text)]


def numbers_in(text):
    return re.findall(r"-?\d+(?:\.\d+)?", text)


def of_displays():
    """What the displays draw."""
    from matplotlib.figure import Figure

    two, classes = X[:, :2], np.arange(len(BAGS)) % 2
    shrunk, one = mh.ShrunkKernelMean().fit(two), mh.KernelMean().fit(X[:, :1])
    monitor = mh.DriftMonitor(300, n_simulations=100, random_state=0).fit(rows(60, seed=4))
    monitor.update(np.concatenate([rows(40, seed=5), rows(40, seed=6, shift=3.0)]))
    quiet = mh.DriftMonitor(300, n_simulations=100, random_state=0).fit(rows(60, seed=4))
    quiet.update(rows(20, seed=4))
    pca, prior = mh.KernelPCA(2).fit(X), mh.BagPrior(random_state=0).fit(BAGS)
    result, alike = mh.mmd_test(two, 2 * Y[:, :2], n_resamples=39, random_state=0), mh.DistributionKernel().fit(BAGS)
    nothing = mh.mmd_test(X, rows(20, seed=8), n_resamples=39, random_state=0)
    calls = {
        "DriftDisplay": lambda ax: mh.plotting.DriftDisplay.from_monitor(monitor, ax=ax),
        "DriftDisplay, quiet": lambda ax: mh.plotting.DriftDisplay.from_monitor(quiet, ax=ax),
        "ColumnWitnessDisplay": lambda ax: mh.plotting.ColumnWitnessDisplay.from_monitor(monitor, ax=ax),
        "BagGramDisplay": lambda ax: mh.plotting.BagGramDisplay.from_estimator(alike, BAGS, y=classes, ax=ax),
        "BagGramDisplay, no classes": lambda ax: mh.plotting.BagGramDisplay.from_estimator(alike, BAGS, ax=ax),
        "BagMapDisplay": lambda ax: mh.plotting.BagMapDisplay.from_prior(prior, BAGS, classes, ax=ax),
        "LooPathDisplay": lambda ax: mh.plotting.LooPathDisplay.from_estimator(mh.SpectralKernelMean().fit(X), ax=ax),
        "BandsDisplay": lambda ax: mh.plotting.BandsDisplay.from_estimator(
            one, X[:, :1], n_resamples=19, random_state=0, ax=ax
        ),
        "SharesDisplay": lambda ax: mh.plotting.SharesDisplay.from_estimator(mh.AdaptiveKernelMean().fit(X), ax=ax),
        "KernelPCADisplay": lambda ax: mh.plotting.KernelPCADisplay.from_estimator(pca, X, ax=ax),
        "KernelPCADisplay, classes": lambda ax: mh.plotting.KernelPCADisplay.from_estimator(
            pca, X, y=np.arange(len(X)) % 3, ax=ax
        ),
        "KernelMeanDisplay": lambda ax: mh.plotting.KernelMeanDisplay.from_estimator(shrunk, two, ax=ax),
        "KernelMeanDisplay, a column": lambda ax: mh.plotting.KernelMeanDisplay.from_estimator(one, X[:, :1], ax=ax),
        "ComponentsDisplay": lambda ax: mh.plotting.ComponentsDisplay.from_result(result, ax=ax),
        "ComponentsDisplay, of nothing": lambda ax: mh.plotting.ComponentsDisplay.from_result(nothing, ax=ax),
        "ResultWitnessDisplay": lambda ax: mh.plotting.ResultWitnessDisplay.from_result(result, ax=ax),
    }
    for name, draw in calls.items():
        ax = Figure().subplots()
        draw(ax)
        *words, numbers = numbers_of(ax)
        yield name, [*words, np.abs(numbers) if name.startswith("KernelPCA") else numbers]  # signs of axes are free


def of_reports():
    """What the report says and draws of made rows: every table, finding, note and piece of evidence."""
    made, told = made_rows(), {}
    for name, experiment in EXPERIMENTS.items():
        with recorded() as pictures:
            section = experiment.section(made[name])
        told[name] = {"summary": section.summary}
        yield f"{name}: pictures", pictures
        yield f"{name}: captions", [[picture.caption, picture.finding] for picture in section.pictures]
        yield (
            f"{name}: tables",
            [
                [table.caption, list(table.columns), *map(list, table.rows), sorted(table.bold)]
                for table in section.tables
            ],
        )
        yield f"{name}: notes", list(section.notes)
    for claim in CLAIMS:
        finding = judge(claim, made)
        yield claim.id, [finding.verdict, finding.evidence]
    for seed in (1, 2):  # other rows are the extreme ones
        rows = {"theorems": made_rows(seed)["theorems"]}
        findings = [judge(claim, rows) for claim in CLAIMS if claim.needs == ("theorems",)]
        tables = EXPERIMENTS["theorems"].section(rows["theorems"]).tables
        yield f"theorems, {seed}", [[finding.evidence for finding in findings], [list(table.rows) for table in tables]]
    yield "in short", [list(line) for line in summary_lines(told)]
    claims = [
        {"text": claim.text, "where": claim.where, "verdict": verdict, "evidence": claim.id}
        for claim, verdict in zip(CLAIMS[:4], VERDICTS, strict=True)
    ]
    yield "claims", [claims_table({"claims": claims}, width).splitlines() for width in (10, 60, 79, 80, 120)]


def of_plans():
    """What would run, and for how long."""
    for (name, experiment), quick in product(EXPERIMENTS.items(), (True, False)):
        plan = Plan(quick=quick)
        cells = experiment.cells(plan)
        seconds = np.array([experiment.seconds(cell) for cell in cells])
        yield f"{name}, quick={quick}", [len(cells), cells[0], cells[-1], seconds, list(experiment.data_sets(plan))]


def of_cells():
    """Rows of one cell of each experiment on made data."""
    cells = {
        figure1: {},
        figure2: {"d": 10, "n": [6]},
        kernel_choice: {"width": [0.5]},
        normalisation: {},
        theorems: {},
    }
    for module, setting in cells.items():
        for i, row in enumerate(module.EXPERIMENT.run({"seed": 0, "repetition": 0, **setting}, None)):
            unstable = ("printed",) if row.get("kernel") == theorems.SINGULAR else ()
            yield f"{module.NAME} {i}", {key: value for key, value in row.items() if key not in unstable}


CALLS = {name[3:]: call for name, call in globals().items() if name.startswith("of_")}


# ---------------------------------------------------------------- storing and comparing


def plain(value):
    """JSON of a few numbers: of a long array, its size, its sum and a sum with uneven weights."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray) and value.size > 6:
        flat = value.astype(float).ravel()
        return [len(flat), float(flat.sum()), float(flat @ np.cos(np.arange(len(flat))))]
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def answers(name):
    """The answers of one group of calls, as JSON has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return json.loads(json.dumps({call: plain(found) for call, found in CALLS[name]()}))


if __name__ == "__main__":
    stored = {name: answers(name) for name in CALLS}
    STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
