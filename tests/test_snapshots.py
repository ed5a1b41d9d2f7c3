"""Numerical snapshots: the calls of ``helpers/snapshots.py`` give the stored numbers."""

import json
import math

import pytest
from sklearn.utils.fixes import parse_version, sp_version
from snapshots import CALLS, STORED, answers

EXPECTED = json.loads(STORED.read_text(encoding="utf-8"))
SAME = 1e-5
"""Searches end this close to each other on other machines; no p-value and no choice differs."""

SAME_OF_MANY = 1e-4
"""The same for tests of many rows: their sums of kernel values have the 24 bits of float32, and cancel in part."""


def differences(found, expected, where, same_to=SAME):
    """Places where two answers differ."""
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        near = {key: SAME_OF_MANY if " of many " in key else same_to for key in expected}
        pairs = ((found[key], expected[key], f"{where} / {key}", near[key]) for key in expected)
        return [line for pair in pairs for line in differences(*pair)]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = ((found[i], expected[i], f"{where} [{i}]", same_to) for i in range(len(found)))
        return [line for pair in pairs for line in differences(*pair)]
    if isinstance(expected, float) and isinstance(found, float):
        same = math.isclose(found, expected, rel_tol=same_to, abs_tol=1e-9)
    else:
        same = found == expected
    return [] if same else [f"{where}: {found!r} is not {expected!r}"]


@pytest.mark.skipif(sp_version < parse_version("1.16"), reason="older searches end elsewhere")
@pytest.mark.parametrize("name", CALLS)
def test_answers_are_those_of_this_version(name):
    """Meant changes: ``python tests/helpers/snapshots.py``, and a line in the change log."""
    assert not differences(answers(name), EXPECTED[name], name)
