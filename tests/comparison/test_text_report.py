"""Sentences of a comparison."""

import numpy as np
import pandas as pd
import pytest

import muhat as mh


def halves_of_a_ring(seed=0, n=400):
    """Two tables with equal columns: in one the rows lie on a ring, in the other its columns are shuffled."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, (2, n))
    ring, other = (np.stack([np.cos(t), np.sin(t)], axis=1) for t in angle)
    other[:, 1] = rng.permutation(other[:, 1])
    return pd.DataFrame(ring, columns=["x", "y"]), pd.DataFrame(other, columns=["x", "y"])


def test_all_columns_differ_as_well_only_where_something_else_does():
    ring, shuffled = halves_of_a_ring()
    text = str(mh.compare(ring, shuffled, random_state=0))
    assert "No single column can be named" in text
    assert "All columns together differ (p" in text
    moved = str(mh.compare(ring, ring.assign(x=ring["x"] + 1), random_state=0))
    assert "All columns together differ as well (p" in moved


@pytest.mark.parametrize(("at_least", "sentence"), [(0.0, "x and y differ"), (0.9, "is shown to exceed 90 %")])
def test_the_first_sentence_answers_the_question(at_least, sentence):
    rng = np.random.default_rng(0)
    a, b = (pd.DataFrame({"v": rng.normal(shift, size=300)}) for shift in (0, 1))
    result = mh.compare(a, b, at_least, names=("x", "y"), random_state=0)
    assert sentence in " ".join(str(result).splitlines()[:2])
    assert result.differs == (at_least == 0.0)
