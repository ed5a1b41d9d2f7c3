"""All experiments, in the order of the report, and all claims, in the order of the paper."""

from __future__ import annotations

from muhat.reproduce.claims import applications, density, synthetic
from muhat.reproduce.claims.base import Claim
from muhat.reproduce.experiment import Experiment
from muhat.reproduce.experiments import (
    figure1,
    figure2,
    figure3,
    kernel_choice,
    normalisation,
    table1,
    table2,
    theorems,
)

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (figure1, figure2, table1, figure3, table2, kernel_choice, normalisation, theorems)
}

CLAIMS: tuple[Claim, ...] = (*synthetic.CLAIMS, *density.CLAIMS, *applications.CLAIMS)
