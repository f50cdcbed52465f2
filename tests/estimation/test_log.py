"""The log of the coalitions of subset samplers."""

import numpy as np
import pytest

from skvalue.estimation import make_design

N = 40


def utility(masks):
    """A function of an integer, whose rounding does not depend on the other
    coalitions."""
    worth = masks @ np.random.default_rng(3).integers(-9, 10, N)
    return worth / (5 + np.abs(worth))


def new_design(seed=0, limit=1000, sampler="stratified", **options):
    design = make_design(sampler, "shapley", N, seed=seed, **options)
    design.limit = limit
    return design


def play(design, most=np.inf):
    """Evaluate coalitions until the end; returns the masks."""
    asked = []
    while len(asked) < most and (masks := design.ask()) is not None:
        design.tell(utility(masks))
        asked.append(masks)
    return np.concatenate(asked)


def check(design, masks):
    again, labels, gains = map(np.concatenate, zip(*design.redraw()))
    np.testing.assert_array_equal(again, masks)
    np.testing.assert_array_equal(design.strata.stratum[masks.sum(axis=1)], labels)
    np.testing.assert_array_equal(gains, utility(masks))


@pytest.mark.parametrize("sampler", ["stratified", "subsets"])
def test_all_coalitions_are_kept_in_pieces_that_do_not_depend_on_the_calls(sampler):
    designs = [
        new_design(limit=5000, size=size, sampler=sampler) for size in (64, 4096)
    ]
    for design in designs:
        check(design, play(design)[1:])
        lengths = [len(labels) for _, labels, _ in design.redraw()]
        assert lengths == [4096, 4992 - 4096]  # complete blocks within the limit


def test_resumes_and_merges_with_the_log():
    first, whole = new_design(limit=500), new_design(limit=1200)
    play(first, most=5)
    first.ask()
    first.forget()  # a call that was interrupted leaves no trace
    resumed = new_design(limit=1200)
    resumed.restore(first.arrays())
    play(resumed)
    masks = play(whole)[1:]
    check(resumed, masks)
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(resumed.arrays()[name], array, err_msg=name)
    other = new_design(2**80)  # a seed may have 128 bits
    masks = np.concatenate([masks, play(other)[1:]])
    resumed.merge(other)
    again = new_design(limit=4000)
    again.restore(resumed.arrays())
    check(again, np.concatenate([masks, play(again)]))
