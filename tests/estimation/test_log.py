"""The log of the coalitions of subset samplers."""

import numpy as np
import pytest

from skvalue.estimation import make_design

N = 40


def utility(masks):
    """A function of an integer, whose rounding does not depend on other coalitions."""
    worth = masks @ np.random.default_rng(3).integers(-9, 10, N)
    return worth / (5 + np.abs(worth))


def new_design(seed=0, limit=1000, sampler="stratified", **options):
    design = make_design(sampler, "shapley", N, seed=seed, **options)
    design.limit = limit
    return design


def play(design, n_calls=np.inf):
    """Evaluate coalitions until the end, or for some calls; returns the masks."""
    asked = []
    while len(asked) < n_calls and (masks := design.ask()) is not None:
        design.tell(utility(masks))
        asked.append(masks)
    return np.concatenate(asked)


def check_log(design, masks):
    """The log of a design holds these coalitions, in order."""
    tiles = list(design.redraw())
    redrawn = np.concatenate([tile_masks for tile_masks, _, _ in tiles])
    labels = np.concatenate([tile_labels for _, tile_labels, _ in tiles])
    gains = np.concatenate([tile_gains for _, _, tile_gains in tiles])
    np.testing.assert_array_equal(redrawn, masks)
    np.testing.assert_array_equal(design.strata.stratum[masks.sum(axis=1)], labels)
    np.testing.assert_array_equal(gains, utility(masks))


@pytest.mark.parametrize("size", [64, 4096])
@pytest.mark.parametrize("sampler", ["stratified", "subsets"])
def test_all_coalitions_are_kept_in_tiles_that_do_not_depend_on_the_calls(
    sampler, size
):
    design = new_design(limit=5000, size=size, sampler=sampler)
    check_log(design, play(design)[1:])  # all but that of all players
    lengths = [len(labels) for _, labels, _ in design.redraw()]
    assert lengths == [4096, 4992 - 4096]  # complete blocks within the limit


def resumed_design():
    """A design that an interruption ended, resumed and played to the end."""
    first = new_design(limit=500)
    play(first, n_calls=5)
    first.ask()
    first.forget()  # a call that was interrupted leaves no trace
    resumed = new_design(limit=1200)
    resumed.restore(first.arrays())
    play(resumed)
    return resumed


def test_a_resumed_design_has_the_log_of_an_uninterrupted_one():
    resumed = resumed_design()
    uninterrupted = new_design(limit=1200)
    check_log(resumed, play(uninterrupted)[1:])
    arrays = resumed.arrays()
    for name, array in uninterrupted.arrays().items():
        np.testing.assert_array_equal(arrays[name], array, err_msg=name)


def test_a_merged_design_has_both_logs_and_resumes():
    design = resumed_design()
    masks = play(new_design(limit=1200))[1:]
    other = new_design(2**80)  # a seed may have 128 bits
    other_masks = play(other)[1:]
    design.merge(other)
    resumed = new_design(limit=4000)
    resumed.restore(design.arrays())
    check_log(resumed, np.concatenate([masks, other_masks, play(resumed)]))
