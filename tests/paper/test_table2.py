"""Table 2: kernels between bags against double loops, machines, and the verdicts on its claims."""

import numpy as np
import pytest
from paper_samples import judged
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, OneClassSVM

from muhat.bags.support_measure import OneClassSupportMeasureMachine
from muhat.kernels.radial import Gaussian
from paper import table2
from paper.experiment import Plan
from paper.protocol import ESTIMATORS
from paper.table2 import (
    EXPERIMENT,
    Grid,
    accuracies,
    anomaly_bags,
    areas,
    inner_products,
    labelled_bags,
    level2_grams,
)


@pytest.fixture
def few_bags(monkeypatch):
    monkeypatch.setattr(table2, "SYNTHETIC_BAGS", (10, 3))
    monkeypatch.setattr(table2, "SYNTHETIC_EVENTS", 200)
    monkeypatch.setattr(table2, "SYNTHETIC_GROUPS", (12, 6))
    monkeypatch.setattr(table2, "QUICK", Grid((0,), (1.0,), C=(1.0, 10.0), nu=(0.1,)))


@pytest.fixture
def bags(few_bags):
    return labelled_bags("synthetic", 6, np.random.default_rng(0), None)


def double_loop(bags, doubling, estimator):
    """⟨μ_i, μ_j⟩ of all bags by loops over pairs of bags, the kernel written out."""
    median = Gaussian().resolve(np.concatenate(list(bags.train))).bandwidth
    width = median**2 / 2.0**doubling
    mean = clone(ESTIMATORS[estimator]).set_params(kernel=Gaussian(bandwidth=np.sqrt(width)))
    every = [*bags.train, *bags.test]
    weights = [mean.fit(bag).weights_ for bag in every]
    G = np.empty((len(every), len(every)))
    for i, A in enumerate(every):
        for j, B in enumerate(every):
            K = np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / 2 / width)
            G[i, j] = weights[i] @ K @ weights[j]
    return G


def test_inner_products_are_those_of_a_double_loop(bags):
    n = len(bags.train)
    seen = []
    for doubling, estimator, inner in inner_products(bags, (0, 2)):
        expected = double_loop(bags, doubling, estimator)
        np.testing.assert_allclose(inner.train, expected[:n, :n], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(inner.test, expected[n:, :n], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(inner.test_norms, np.diag(expected)[n:], rtol=1e-9, atol=1e-12)
        seen.append((doubling, estimator))
    assert seen == [(doubling, name) for doubling in (0, 2) for name in ESTIMATORS]


def test_tiles_that_cut_the_bags_differently_agree(bags, monkeypatch):
    whole = list(inner_products(bags, (1,)))
    monkeypatch.setattr(table2, "_ROW_TILE", 18)
    monkeypatch.setattr(table2, "_COLUMN_TILE", 30)
    for (_, _, a), (_, _, b) in zip(whole, inner_products(bags, (1,)), strict=True):
        np.testing.assert_allclose(a.train, b.train, rtol=1e-10)
        np.testing.assert_allclose(a.test, b.test, rtol=1e-10)


def test_level2_kernels_are_explicit_gaussians_of_the_distance(bags):
    *_, (_, _, inner) = inner_products(bags, (0,))
    linear, gaussian = level2_grams(inner, (0.5,))
    norms = np.diag(inner.train)
    squared = np.add.outer(norms, norms) - 2 * inner.train
    width = 0.25 * np.median(squared[np.triu_indices(len(norms), 1)])
    np.testing.assert_array_equal(linear.train, inner.train)
    np.testing.assert_allclose(gaussian.train, np.exp(-squared / 2 / width), rtol=1e-9)
    squared = np.add.outer(inner.test_norms, norms) - 2 * inner.test
    np.testing.assert_allclose(gaussian.test, np.exp(-squared / 2 / width), rtol=1e-9)


def test_accuracy_is_that_of_the_parameters_that_win_the_cross_validation(bags):
    G, n, y = double_loop(bags, 0, "S"), len(bags.train), bags.train_labels
    best = (-1.0, None)
    for C in (1.0, 100.0):
        hits = []
        for fit, held in StratifiedKFold(10, shuffle=True, random_state=5).split(y, y):
            machine = SVC(kernel="precomputed", C=C).fit(G[np.ix_(fit, fit)], y[fit])
            hits.append((machine.predict(G[np.ix_(held, fit)]) == y[held]).mean())
        machine = SVC(kernel="precomputed", C=C).fit(G[:n, :n], y)
        best = max(best, (np.mean(hits), (machine.predict(G[n:, :n]) == bags.test_labels).mean()), key=lambda b: b[0])
    found = accuracies(bags, Grid(doublings=(0,), multiples=(), C=(1.0, 100.0)), seed=5)
    assert found["linear"]["S"] == best[1]


def test_areas_are_those_of_sklearn_and_of_the_one_class_machine(few_bags):
    bags = anomaly_bags("synthetic", 8, np.random.default_rng(1), None)
    assert sorted(set(bags.test_labels)) == [-1, 1]
    found = areas(bags, Grid(doublings=(0,), multiples=(1.0,), nu=(0.3,)))
    G, n = double_loop(bags, 0, "KME"), len(bags.train)
    scores = OneClassSVM(kernel="precomputed", nu=0.3).fit(G[:n, :n]).score_samples(G[n:, :n])
    assert found["linear", "σ² = median/1, ν = 0.3"]["KME"] == roc_auc_score(bags.test_labels, scores)
    machine = OneClassSupportMeasureMachine(mean=ESTIMATORS["F_loo"], nu=0.3).fit(list(bags.train))
    expected = roc_auc_score(bags.test_labels, machine.score_samples(list(bags.test)))
    assert found["gaussian", "σ² = median/1, τ = 1·median, ν = 0.3"]["F_loo"] == expected


@pytest.mark.parametrize("machine", ["SMM", "OCSMM"])
def test_cells_are_deterministic_and_one_split_makes_a_section(few_bags, machine):
    setting = {"seed": 0, "machine": machine, "data": "synthetic", "size": 5, "repetition": 0}
    rows = EXPERIMENT.run(setting, None)
    assert EXPERIMENT.run(setting, None) == rows
    section = EXPERIMENT.section(rows)
    assert section.summary[0]["S"]["error"] is None
    assert "nan" not in str(section.shown[0].rows)
    assert any("synthetic" in note for note in section.notes)


def test_scenes_and_events_are_drawn_without_overlap(data_folder):
    scenes = labelled_bags("scenes4_indoor", 10, np.random.default_rng(0), str(data_folder))
    assert scenes.train.shape == scenes.test.shape == (400, 10, 32)
    assert np.bincount(scenes.train_labels).tolist() == [100] * 4
    together = np.concatenate([scenes.train, scenes.test]).reshape(800, -1)
    assert len(np.unique(together, axis=0)) == 800
    events = anomaly_bags("hep", 20, np.random.default_rng(0), str(data_folder))
    assert events.train.shape == (150, 20, 5)
    assert events.test.shape == (200, 20, 5)


def test_quick_needs_no_data():
    assert {cell["data"] for cell in EXPERIMENT.cells(Plan(quick=True))} == {"synthetic"}
    assert {cell["data"] for cell in EXPERIMENT.cells(Plan())} == {"scenes4_indoor", "hep", "hep_wh"}


def constructed(gain_S, gain_F, data="hep"):
    """Four cases of ten splits; OCSMM has a second, worse choice of parameters."""
    rng = np.random.default_rng(0)
    rows = []
    for machine, parameters in (("SMM", [None]), ("OCSMM", ["good", "bad"])):
        for level2 in ("linear", "gaussian"):
            for i in range(10):
                for choice in parameters:
                    base = (0.3 if choice == "bad" else 0.7) + 0.01 * rng.normal()
                    row = {"machine": machine, "data": data, "size": 10, "repetition": i, "level2": level2}
                    values = {name: base + gain + 1e-3 * rng.normal() for name, gain in
                              (("S", gain_S), ("F_theorem4", gain_F), ("F_loo", 0.0))}  # fmt: skip
                    rows.append({**row, "parameters": choice, "KME": base, **values})
    return rows


@pytest.mark.parametrize(("gains", "better", "worse"), [((0.02, 0.03), 8, 0), ((-0.02, -0.02), 0, 8)])
def test_substitutes_are_told_and_not_judged(gains, better, worse):
    """Machines on two data sets, of which each has a part by estimator."""
    rows = constructed(*gains)
    found = judged("bags-machines-improve", table2=rows)
    assert found.verdict() == "cannot be checked"
    assert "substitutes" in found.number
    assert f"better than KME in {better} and worse in {worse} of 8 comparisons" in found.number
    assert ("gains nothing" in found.number) == (better == 0)
    assert judged("bags-competitive", table2=rows).verdict() == "cannot be checked"


def test_the_papers_table_has_its_numbers_and_those_of_the_substitutes():
    table = EXPERIMENT.section(constructed(0.02, -0.02)).shown[0]
    assert [name for name, _ in table.rows] == ["KME", "S-KMSE", "F-KMSE"]
    assert [cells[0][0][0] for _, cells in table.rows] == ["0.5432", "0.5521", "0.5610"]
    assert [cells[0][1][1] for _, cells in table.rows] == ["", "better", "worse"]


def test_the_best_parameters_of_each_estimator_are_shown():
    section = EXPERIMENT.section(constructed(0.0, 0.0))
    means = [row["KME"]["mean"] for row in section.summary if row["machine"] == "OCSMM"]
    assert min(means) > 0.65
