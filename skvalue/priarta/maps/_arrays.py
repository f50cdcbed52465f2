"""Weights of a network as named arrays, and back from a folder that nobody vouches for.

Importing this imports torch.
"""

import numpy as np
import torch

_COUNTER = "num_batches_tracked"  # of batch norms: only training uses it


def state_arrays(network):
    """Weights and running means of a network by name, without the counters of batch norms."""
    return {
        name: value.detach().cpu().numpy().copy()
        for name, value in network.state_dict().items()
        if not name.endswith(_COUNTER)
    }


def load_arrays(build, arrays):
    """A network with the weights given.

    Parameters
    ----------
    build : callable
        Builds the network; called on torch's "meta" device, so that nothing of its size is
        allocated before the arrays have been found to fit it.
    arrays : dict of str to ndarray
        As `state_arrays` gives them.

    Returns
    -------
    network : torch.nn.Module
        The network, evaluating.

    Raises
    ------
    ValueError
        If names, shapes or kinds differ from the network's, or a number is not finite.
    """
    with torch.device("meta"):
        network = build()
    state = {}
    expected = network.state_dict()
    names = {name for name in expected if not name.endswith(_COUNTER)}
    if set(arrays) != names:
        odd = sorted(set(arrays) ^ names)[0]
        raise ValueError(
            f"arrays must hold the {len(names)} weights of the network that config describes. "
            f"Got {len(arrays)}; {odd!r} is {'missing' if odd in names else 'not among them'}."
        )
    for name, value in expected.items():
        if name.endswith(_COUNTER):
            state[name] = torch.zeros((), dtype=torch.int64)
            continue
        array = np.asarray(arrays[name])
        if array.shape != tuple(value.shape) or array.dtype != np.float32:
            raise ValueError(
                f"{name} must be a float32 array of shape {tuple(value.shape)}. Got {array.dtype} "
                f"of shape {array.shape}."
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must hold finite numbers. Got NaN or infinity.")
        if name.endswith("running_var") and (array < 0).any():
            raise ValueError(f"{name} must hold variances. Got {array.min()}.")
        state[name] = torch.from_numpy(array.copy())
    network.load_state_dict(state, assign=True)
    return network.eval()


def read_vector(arrays, name, size):
    """Take a float64 vector out of a dict of arrays.

    Raises
    ------
    ValueError
        If it is missing, of another size or kind, or not finite.
    """
    vector = np.asarray(arrays.pop(name, None))
    if vector.shape != (size,) or vector.dtype != np.float64 or not np.isfinite(vector).all():
        raise ValueError(
            f"{name} must be a float64 array of {size} finite numbers. Got {vector.dtype} of shape "
            f"{vector.shape}."
        )
    return vector


def read_config(config, **kinds):
    """Entries of a config, each checked; no other entries are allowed.

    Parameters
    ----------
    config : dict
        From a JSON file.
    **kinds : callable
        For each name: the value to what is to be used, raising ValueError if it cannot be.

    Returns
    -------
    values : list
        In the order of `kinds`.

    Raises
    ------
    ValueError
        If a name is missing or unknown, or a value cannot be.
    """
    if not isinstance(config, dict) or set(config) != set(kinds):
        got = sorted(config) if isinstance(config, dict) else type(config).__name__
        raise ValueError(f"config must have the entries {', '.join(sorted(kinds))}. Got {got}.")
    values = []
    for name, check in kinds.items():
        try:
            values.append(check(config[name]))
        except (TypeError, ValueError, OverflowError) as error:
            shown = repr(config[name])[:60]
            raise ValueError(f"config[{name!r}] cannot be used. Got {shown}.") from error
    return values


def whole_number(least, most):
    """Check of a whole number within bounds."""

    def check(value):
        if type(value) is not int or not least <= value <= most:
            raise ValueError
        return value

    return check


def one_of(*words):
    """Check of a word."""

    def check(value):
        if value not in words or type(value) not in {type(word) for word in words}:
            raise ValueError
        return value

    return check
