"""Plans and random numbers: repetitions by form, and numbers that pair the settings of a repetition."""

import pytest

from paper.experiment import Plan, cell_key, generator


@pytest.mark.parametrize(
    ("plan", "count"), [(Plan(), 5), (Plan(quick=True), 2), (Plan(repetitions=3), 3), (Plan(True, 7, 4), 4)]
)
def test_repetitions_are_those_asked_for_or_those_of_the_form(plan, count):
    assert plan.repeated(full=5, quick=2) == [{"seed": plan.seed, "repetition": i} for i in range(count)]


def test_settings_share_the_numbers_of_a_repetition_and_nothing_else():
    def number(name="a", stream=(), **setting):
        return generator(name, {"seed": 0, "repetition": 0, **setting}, *stream).random()

    assert number(n=10) == number(n=20)
    others = [number(), number("b"), number(seed=1), number(repetition=1), number(stream=(1,))]
    assert len(set(others)) == len(others)


def test_the_key_of_a_cell_does_not_depend_on_the_order_of_its_setting():
    assert (
        cell_key("a", {"seed": 0, "n": 1}) == cell_key("a", {"n": 1, "seed": 0}) != cell_key("b", {"seed": 0, "n": 1})
    )
