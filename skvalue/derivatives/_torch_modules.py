"""Checks, targets and initial parameters of modules. Importing this imports torch."""

import copy

import numpy as np
import torch
from torch import nn

from .._utils.torch_device import seeded
from .._utils.warned import warn

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_DROPOUTS = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)


def checked_copy(module):
    """A copy of a module, in evaluation mode, checked to have trainable parameters."""
    if not isinstance(module, nn.Module):
        raise TypeError(
            "model must be the name of a built-in model or a torch.nn.Module, not its "
            f"class. Got {module!r}."
        )
    for name, layer in module.named_modules():
        if not isinstance(layer, _BATCH_NORMS):
            continue
        if layer.training or not layer.track_running_stats:
            raise ValueError(
                "model must not mix rows: batch norm in training mode would mix those "
                f"of all parties. Got {type(layer).__name__} ({name!r}): call "
                "module.eval(), which makes its running statistics public constants, "
                "or use GroupNorm or LayerNorm."
            )
    parameters = list(module.parameters())
    if any(isinstance(p, nn.UninitializedParameter) for p in parameters):
        raise ValueError(
            "model must be initialised: run its lazy layers once on a public row."
        )
    trained = [p for p in parameters if p.requires_grad]
    if not trained:
        got = "parameters that are all frozen" if parameters else "no parameter"
        raise ValueError(f"model must have a parameter to train. Got {got}.")
    if isinstance(module, torch.jit.ScriptModule):
        raise TypeError(
            "model must be a module of Python, whose layers can be watched. Got a "
            f"{type(module).__name__}: pass the module that was scripted."
        )
    if not all(p.is_meta or p.detach().isfinite().all() for p in parameters):
        raise ValueError(
            "model must have finite parameters. Got NaN or infinity: initialise it."
        )
    dtypes = sorted({str(p.dtype) for p in trained})
    if len(dtypes) > 1 or not trained[0].dtype.is_floating_point:
        raise ValueError(
            "model must train parameters of one floating dtype. Got "
            f"{', '.join(dtypes)}."
        )
    return copy.deepcopy(module).eval()


def warn_of_dropout(module):
    """Warn, once per fit, that layers of dropout in training mode are turned off."""
    if not isinstance(module, nn.Module):
        return
    layers = [layer for layer in module.modules() if isinstance(layer, _DROPOUTS)]
    if any(layer.training and layer.p > 0 for layer in layers):
        warn(
            "Dropout is off: values must not depend on its random numbers. Call "
            "module.eval() to silence this warning."
        )


def trained_layers(module):
    """Layers that directly have a trained parameter."""
    layers = []
    for layer in module.modules():
        if any(p.requires_grad for p in layer.parameters(recurse=False)):
            layers.append(layer)
    return layers


def starting_point(module, start):
    """Whether permutations start from the "given" parameters or from "random" ones."""
    if start not in ("auto", "given", "random"):
        raise ValueError(f"start must be 'auto', 'given' or 'random'. Got {start!r}.")
    fixed = [
        layer
        for layer in trained_layers(module)
        if not hasattr(layer, "reset_parameters")
    ]
    if start == "random" and fixed:
        raise ValueError(
            "start='random' needs layers with reset_parameters. Got "
            f"{type(fixed[0]).__name__}: pass start='given'."
        )
    if start == "auto":
        has_frozen = any(not p.requires_grad for p in module.parameters())
        return "given" if has_frozen or fixed else "random"
    return start


def drawn_parameters(module, seed):
    """Named parameters of a module on the CPU, trained layers reset from a seed."""
    with seeded(seed):  # one thread at a time resets the module
        for layer in trained_layers(module):
            layer.reset_parameters()
        return {name: p.detach().clone() for name, p in module.named_parameters()}


def as_targets(y, outputs, name, dtype):
    """Labels, or targets of a dtype, as the loss needs them, on the device of outputs.

    Classes of a module with one output per row are the floats 0 and 1.
    """
    is_target = y.dtype.kind == "f"
    has_many = outputs.ndim == 2 and len(outputs[0]) > 1
    if outputs.ndim > 2 or (is_target and has_many):
        raise ValueError(
            "model must have one output per row for a target, and one output per row "
            f"and class for classes. Got outputs of shape {tuple(outputs.shape[1:])} "
            "per row."
        )
    n_outputs = outputs[0].numel()
    if is_target or n_outputs == 1:
        if not is_target and len(y) and y.max() > 1:
            raise ValueError(
                "model must have an output for every class; one output is for two "
                f"classes. Got one output and class number {y.max()} in {name}."
            )
        targets = torch.tensor(y, dtype=dtype, device=outputs.device)
        return targets.reshape(len(y), *outputs.shape[1:])
    if len(y) and y.max() >= n_outputs:
        raise ValueError(
            f"model must have an output for every class. Got {n_outputs} outputs and "
            f"class number {y.max()} (from 0) in {name}."
        )
    return torch.as_tensor(y.astype(np.int64), device=outputs.device)


def probe(module, x):
    """Outputs on public rows, and the bytes of intermediate arrays per row.

    Raises ValueError if the output of a row depends on other rows.
    """
    sizes = []

    def add_bytes(layer, inputs, output):
        for tensor in output if isinstance(output, tuple) else (output,):
            if torch.is_tensor(tensor):
                sizes.append(tensor.numel() * tensor.element_size())

    hooks = [layer.register_forward_hook(add_bytes) for layer in module.modules()]
    try:
        with torch.no_grad():
            outputs = module(x)
            if not torch.is_tensor(outputs):
                raise ValueError(
                    f"it returns a {type(outputs).__name__}, not a tensor: wrap it in "
                    "a module that returns the tensor alone."
                )
            n_bytes = (sum(sizes) + x.numel() * x.element_size()) // len(x)
            one_by_one = torch.cat([module(x[i : i + 1]) for i in range(len(x))])
            with_others = module(torch.cat([x, 1 - 2 * x]))[: len(x)]
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"model must accept rows of shape {tuple(x.shape[1:])}. Got: {error}"
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
    if len(outputs) != len(x):
        raise ValueError(
            f"model must return one output per row. Got {len(outputs)} for {len(x)} "
            "rows."
        )

    # A GPU uses different kernels for one row and for eight: the last digits differ.
    scale = float(outputs.abs().max())
    eps = torch.finfo(outputs.dtype).eps if outputs.is_floating_point() else 0.0
    rtol = max(1e-3, 8 * eps)
    atol = scale * max(1e-4, 4 * eps)
    for other in (one_by_one, with_others):
        if not torch.allclose(outputs, other, rtol=rtol, atol=atol):
            raise ValueError(
                "model must not mix rows nor be random: the output of a row must "
                "depend on that row only. Got different outputs for the same row in "
                "different batches."
            )
    return outputs, max(1, n_bytes)
