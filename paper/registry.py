"""Registry: all experiments in the order of the report, all claims in the order of the paper, and the headlines."""

from __future__ import annotations

from paper import figure1, figure2, figure3, kernel_choice, normalisation, table1, table2, theorems
from paper.claim import Claim
from paper.experiment import Experiment, Headline

EXPERIMENTS: dict[str, Experiment] = {
    module.NAME: module.EXPERIMENT
    for module in (figure1, figure2, table1, figure3, table2, kernel_choice, normalisation, theorems)
}

CLAIMS: tuple[Claim, ...] = (
    theorems.james_stein_dominates,
    theorems.james_stein_inadmissible,
    theorems.theorem1_better_for_any_target,
    theorems.theorem2_form_of_f_kmse,
    kernel_choice.slow_decay_gains_more,
    kernel_choice.narrow_kernels_gain_more,
    kernel_choice.laplacian_gains_more,
    theorems.weights_below_one_over_n,
    normalisation.sum_to_one_unlikely_to_improve,
    normalisation.post_normalising_deteriorates,
    theorems.theorem3_minimises_loocv,
    theorems.theorem4_is_loocv,
    theorems.selection_in_linear_time,
    theorems.cross_validation_costs_little,
    figure3.cose_improves_operator,
    figure2.similar_in_other_settings,
    figure1.tend_to_outperform,
    figure1.large_lambda_deteriorates,
    figure2.outperform,
    figure2.simple_better_than_flexible,
    figure2.better_at_large_d_small_n,
    figure2.never_worse,
    table1.consistently_smaller,
    table1.few_exceptions,
    figure3.cose_outperforms,
    figure3.centring_improves_little,
    table2.machines_improve,
    table1.better_on_small_tables,
    table1.simple_and_flexible_compete,
    table2.simple_and_flexible_compete,
    table1.superior_in_applications,
)

HEADLINES: tuple[Headline, ...] = (
    *figure2.HEADLINES,
    *theorems.HEADLINES,
    kernel_choice.HEADLINE,
    *table1.HEADLINES,
    *figure3.HEADLINES,
    table2.HEADLINE,
)
"""Sentences of the conclusion, in the order within each of its paragraphs."""
