"""Weights of a network as named arrays, and a network from untrusted arrays.

Importing this imports torch.
"""

import torch

from ..._utils.untrusted import checked_array, named_arrays, refuse

_COUNTER = "num_batches_tracked"  # of batch norms; only used in training


def state_arrays(network):
    """Weights and running means of a network by name, without counters of batches."""
    return {
        name: value.detach().cpu().numpy().copy()
        for name, value in network.state_dict().items()
        if not name.endswith(_COUNTER)
    }


def load_arrays(build, arrays):
    """A network in evaluation mode with checked weights, in the form of `state_arrays`.

    `build` is called on torch's "meta" device, so that no memory is allocated before
    the arrays have been checked.
    """
    with torch.device("meta"):
        network = build()
    expected = network.state_dict()
    shapes = {
        name: tuple(value.shape)
        for name, value in expected.items()
        if not name.endswith(_COUNTER)
    }
    arrays = named_arrays(arrays, shapes, "float32")
    for name, array in arrays.items():
        if name.endswith("running_var") and (array < 0).any():
            refuse(name, "of variances", float(array.min()))

    state = {}
    for name in expected:
        if name in arrays:
            state[name] = torch.from_numpy(arrays[name].copy())
        else:
            state[name] = torch.zeros((), dtype=torch.int64)
    network.load_state_dict(state, assign=True)
    return network.eval()


def read_scale(arrays, n_centres, n_scales):
    """Checked centre and scale among the arrays of a map, and the remaining arrays."""
    centre = checked_array(arrays.get("centre"), "centre", (n_centres,))
    scale = checked_array(arrays.get("scale"), "scale", (n_scales,))
    if not (scale > 0).all():
        refuse("scale", "of positive numbers", float(scale.min()))
    weights = {
        name: array for name, array in arrays.items() if name not in ("centre", "scale")
    }
    return centre, scale, weights
