"""The batches of a training, on its device. Importing this imports torch."""

from itertools import chain
from typing import Any, NamedTuple

from ..._utils.torch_device import free_memory, send

# Steps on a GPU whose random numbers go there together, and their bytes at most.
_STEPS_ON_GPU = 64
_BYTES_ON_GPU = 2**26


class Training(NamedTuple):
    """A network before its training, and what its steps need."""

    network: Any
    # The form of the examples.
    examples: Any
    # All of them, a tensor on the CPU.
    inputs: Any
    # Maps a batch of inputs, and what was drawn for it, to the mean loss.
    loss_of: Any
    # Maps a number of examples to a `Draw`; None if the loss draws what it needs.
    draw: Any = None


class Batches:
    """The batches of a training on its device, and what was drawn for each.

    A GPU has all inputs if they take less than a quarter of its free memory; else it
    gets each batch. The CPU waits for no copy, and draws for some steps at once.
    """

    def __init__(self, training, device):
        self._device = device
        self._draw = training.draw
        self._inputs = training.inputs
        self._has_all_inputs = False
        if device == "cpu":
            return
        n_bytes = self._inputs.numel() * self._inputs.element_size()
        if n_bytes < free_memory() // 4:
            self._inputs = self._inputs.to(device)
            self._has_all_inputs = True

    def __call__(self, rows, size):
        """Yield the batches of some rows, and what was drawn for each.

        That is None on a CPU, where the loss draws.
        """
        batches = rows.split(size)
        if self._device == "cpu":
            for batch in batches:
                yield self._inputs[batch], None
            return

        if self._has_all_inputs:
            (rows,) = send([rows], self._device)
            batches = rows.split(size)
        start = 0
        while start < len(batches):
            draws = self._draw_some(batches[start : start + _STEPS_ON_GPU])
            for batch, drawn in zip(batches[start:], draws):
                inputs = self._inputs[batch]
                if not self._has_all_inputs:
                    (inputs,) = send([inputs], self._device)
                yield inputs, drawn
            start += len(draws)

    def _draw_some(self, batches):
        """What is drawn for the first batches, as many as fit, on the device."""
        if self._draw is None:
            return [None] * len(batches)
        draws = []
        n_bytes = 0
        for batch in batches:
            drawn = self._draw(len(batch))
            draws.append(drawn)
            n_bytes += sum(tensor.nbytes for tensor in drawn.numbers)
            if n_bytes >= _BYTES_ON_GPU:
                break
        numbers = list(chain.from_iterable(drawn.numbers for drawn in draws))
        sent = iter(send(numbers, self._device))
        return [
            drawn._replace(numbers=[next(sent) for _ in drawn.numbers])
            for drawn in draws
        ]
