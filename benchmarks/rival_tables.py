"""Verdicts of evidently, deepchecks and pointblank on pairs of tables in files, for ``tables.py rivals``.

    python benchmarks/rival_tables.py FOLDER

It is run by the Python that has these libraries, which may be another one than muhat's, and needs nothing but pandas
and one of them. ``FOLDER/pairs.json`` lists the pairs: name, files, columns of dates and columns of categories. Each
verdict is a line of JSON: tool, pair, whether it says that the tables differ (None where it fails), and CPU seconds.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import pandas as pd

LEVEL = 0.05


def evidently_verdicts():
    """The preset for data drift: does any column drift, and does half of them (which it calls drift of the data)?"""
    from evidently import Report
    from evidently.presets import DataDriftPreset

    def verdicts(a, b, categories):
        found = Report([DataDriftPreset()]).run(b, a).dict()["metrics"]
        drifted = next(metric["value"] for metric in found if "count" in str(metric["value"]))
        return {
            "evidently, any column": drifted["count"] > 0,
            "evidently, half of the columns": drifted["share"] >= 0.5,
        }

    return verdicts


def deepchecks_feature_verdicts():
    """The drift of features, with the check's own condition."""
    from deepchecks.tabular import Dataset
    from deepchecks.tabular.checks import FeatureDrift

    def verdicts(a, b, categories):
        check = FeatureDrift().add_condition_drift_score_less_than()
        found = check.run(*(Dataset(table, cat_features=categories) for table in (a, b)))
        return {"deepchecks, feature drift": not found.passed_conditions()}

    return verdicts


def deepchecks_joint_verdicts():
    """The classifier that tells the tables apart, with the check's own condition."""
    from deepchecks.tabular import Dataset
    from deepchecks.tabular.checks import MultivariateDrift

    def verdicts(a, b, categories):
        check = MultivariateDrift().add_condition_overall_drift_value_less_than()
        found = check.run(*(Dataset(table, cat_features=categories) for table in (a, b)))
        return {"deepchecks, multivariate drift": not found.passed_conditions()}

    return verdicts


def pointblank_verdicts():
    """The difference of two scans, which has p-values of Kolmogorov and Smirnov's test and no verdict of its own."""
    import pointblank

    def verdicts(a, b, categories):
        scores = pointblank.DataScan(b).compare(pointblank.DataScan(a)).to_dict()["drift_scores"]
        pvalues = [score["ks_p_value"] for score in scores.values() if "ks_p_value" in score]
        return {"pointblank, any KS p-value": min(pvalues, default=1.0) <= LEVEL}

    return verdicts


TOOLS = (evidently_verdicts, deepchecks_feature_verdicts, deepchecks_joint_verdicts, pointblank_verdicts)


def main(folder):
    """Print the verdicts of all tools that can be imported."""
    warnings.filterwarnings("ignore")
    pairs = json.loads((folder / "pairs.json").read_text())
    for make in TOOLS:
        try:
            tool = make()
        except ImportError:
            continue
        for name, files, dates, categories in pairs:
            tables = [pd.read_csv(folder / file, parse_dates=dates) for file in files]
            start = time.process_time()
            try:
                said = tool(*tables, categories)
            except Exception as error:  # whatever it stumbles over is its answer
                said = {f"{make.__name__.removesuffix('_verdicts')} fails: {type(error).__name__}": None}
            seconds = time.process_time() - start
            for label, differs in said.items():
                differs = None if differs is None else bool(differs)
                print(json.dumps({"tool": label, "pair": name, "differs": differs, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
