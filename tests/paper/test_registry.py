"""All experiments and claims: cells are deterministic and have unique names, and sections hold without errors."""

import ast
import importlib
import json
from pathlib import Path

import pytest
from paper_samples import CELL

import muhat as mh
from paper.experiment import Plan, cell_key
from paper.page import ReportTable
from paper.registry import CLAIMS, EXPERIMENTS

SYNTHETIC = {
    "figure1": CELL,
    "figure2": {**CELL, "d": 10, "n": [6]},
    "kernel_choice": {**CELL, "width": [0.5]},
    "normalisation": CELL,
    "theorems": CELL,
}


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_cell_is_the_same_again(name):
    first, again = (EXPERIMENTS[name].run(SYNTHETIC[name], None) for _ in range(2))
    assert again == first
    json.dumps(again, allow_nan=False)
    other = EXPERIMENTS[name].run({**SYNTHETIC[name], "repetition": 1}, None)
    assert [row.get("KME") for row in other] != [row.get("KME") for row in again]


@pytest.mark.parametrize("name", SYNTHETIC)
def test_section_of_one_repetition(name):
    experiment = EXPERIMENTS[name]
    cells = experiment.cells(Plan(quick=True, repetitions=1))
    section = experiment.section([row for cell in cells for row in experiment.run(cell, None)])
    text = json.dumps(section.summary, allow_nan=False, ensure_ascii=False)
    assert name == "theorems" or '"error": null' in text
    for item in (*section.shown, *section.folded):
        if isinstance(item, ReportTable):
            assert all(len(line) == len(item.columns) for line in item.rows)
            assert not any("nan" in str(value).lower() for line in item.rows for value in line)
        else:
            assert item.svg.startswith("<svg")
            assert "nan" not in item.caption + item.finding
            assert item.finding.endswith(".")
    assert sum(map(experiment.seconds, cells)) < 3


def test_every_experiment_has_cells_of_both_forms_and_unique_keys():
    for experiment in EXPERIMENTS.values():
        for plan in (Plan(), Plan(quick=True)):
            keys = [cell_key(experiment.name, setting) for setting in experiment.cells(plan)]
            assert keys
            assert len(set(keys)) == len(keys)
        assert set(experiment.data_sets(Plan(quick=True))) <= {"wine", "wdbc"}


def test_every_claim_has_an_id_of_its_own_and_experiments_that_exist():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) == 31
    assert {name for claim in CLAIMS for name in claim.needs} == set(EXPERIMENTS)


PAPER = sorted((Path(__file__).parents[2] / "paper").glob("*.py"))


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_only_public_names_of_the_library_are_used(path):
    """``import muhat as mh``, and then names in an ``__all__``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)}
    assert {line for line in imported if "muhat" in line} <= {"import muhat as mh"}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Attribute)):
        match ast.unparse(node).split("."):
            case ["mh", name]:
                assert name in [*mh.__all__, *mh._SUBPACKAGES]
            case ["mh", subpackage, name] if subpackage in mh._SUBPACKAGES:
                assert name in importlib.import_module(f"muhat.{subpackage}").__all__
