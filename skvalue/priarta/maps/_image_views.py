"""Views of images on a GPU, from numbers that kornia draws on the CPU.

Each transformation of `image_augmentations` is done by operations on the whole batch,
as by kornia 0.9 on a CPU. kornia reads some numbers of a batch on the CPU, so that it
would wait for the GPU, and cuts out crops one by one. Importing this imports torch.
"""

import torch
from torch.nn import functional

# Weights of red, green and blue in a grey.
_GREY = (0.299, 0.587, 0.114)

# Numbers of these of kornia are drawn for a batch, in this order.
_JITTER = ("brightness_factor", "contrast_factor", "saturation_factor", "hue_factor")


# What a transformation needs of what was drawn: tensors on the CPU whose first axis is
# that of the images of shape (n, channels, height, width) ---------------------------


def _affine_numbers(module, drawn, shape):
    """Matrices of an affine map, or of a rotation, for `_warp`."""
    _, _, height, width = shape
    images = torch.empty((len(drawn["batch_prob"]), 1, height, width))
    matrices = module.compute_transformation(images, drawn, module.flags)
    unit = _unit_of_pixels(height, width, module.flags["align_corners"])
    # From places of the view to those of the image.
    inverse = torch.linalg.inv(matrices.double())
    theta = torch.linalg.inv(unit) @ inverse @ unit
    return [theta[:, :2].float()]


def _unit_of_pixels(height, width, align_corners):
    """The map from places in [-1, 1] to those of pixels, (3, 3)."""
    margin = 1 if align_corners else 0
    return torch.tensor(
        [
            [(width - margin) / 2, 0, (width - 1) / 2],
            [0, (height - margin) / 2, (height - 1) / 2],
            [0, 0, 1],
        ],
        dtype=torch.float64,
    )


def _crop_numbers(module, drawn, shape):
    """Matrices of crops that are resized, for `_warp`; corners are whole pixels."""
    _, _, height, width = shape
    corners = drawn["src"].long().double()
    left, top = corners[:, 0].T
    right = corners[:, 1, 0]
    bottom = corners[:, 3, 1]
    theta = torch.zeros((len(corners), 2, 3), dtype=torch.float64)
    theta[:, 0, 0] = (right - left) / (width - 1)
    theta[:, 0, 2] = (left + right) / (width - 1) - 1
    theta[:, 1, 1] = (bottom - top) / (height - 1)
    theta[:, 1, 2] = (top + bottom) / (height - 1) - 1
    return [theta.float()]


def _blur_numbers(module, drawn, shape):
    """Weights of the pixels of a window, along one axis."""
    size = module.flags["kernel_size"][0]
    places = torch.arange(size) - size // 2
    exponents = places**2 / (2 * drawn["sigma"].double()[:, None] ** 2)
    return [torch.softmax(-exponents, dim=1).float()]


def _contrast_numbers(module, drawn, shape):
    return [drawn["contrast_factor"]]


def _jitter_numbers(module, drawn, shape):
    return [drawn[name] for name in _JITTER]


def _no_numbers(module, drawn, shape):
    return []


# Transformations, of images and of such numbers on one device ------------------------


def _warp(module, drawn, images, theta):
    align_corners = module.flags["align_corners"]
    grid = functional.affine_grid(theta, images.shape, align_corners)
    return functional.grid_sample(images, grid, align_corners=align_corners)


def _blur(module, drawn, images, weights):
    size = weights.shape[1]
    margin = size // 2
    height, width = images.shape[2:]
    padded = functional.pad(images, 4 * [margin], mode="reflect")
    by_image = weights[:, :, None, None, None]
    along_x = sum(by_image[:, k] * padded[..., k : k + width] for k in range(size))
    return sum(by_image[:, k] * along_x[:, :, k : k + height] for k in range(size))


def _contrast(module, drawn, images, factors):
    return _scaled(images, factors[:, None, None, None])


def _flip(module, drawn, images):
    return images.flip(3)


def _jitter(module, drawn, images, *factors):
    """Brightness, contrast, saturation and hue, in the order that was drawn."""
    steps = (_scaled, _with_contrast, _saturated, _with_hue)
    for number in drawn["order"].tolist():
        images = steps[number](images, factors[number][:, None, None, None])
    return images.clamp(0.0, 1.0)


def _greyed(module, drawn, images):
    return _grey(images).expand_as(images)


def _grey(images):
    """Grey of images of three channels, (n, 1, height, width)."""
    red, green, blue = images.split(1, dim=1)
    return _GREY[0] * red + _GREY[1] * green + _GREY[2] * blue


def _scaled(images, factors):
    return (images * factors).clamp(0.0, 1.0)


def _with_contrast(images, factors):
    mean = _grey(images).mean((2, 3), keepdim=True)
    return (factors * images + (1 - factors) * mean).clamp(0.0, 1.0)


def _saturated(images, factors):
    return (factors * images + (1 - factors) * _grey(images)).clamp(0.0, 1.0)


def _with_hue(images, turns):
    """Images whose hue is shifted by a part of the circle."""
    red, green, blue = images.split(1, dim=1)
    largest = images.amax(1, keepdim=True)
    spread = largest - images.amin(1, keepdim=True)
    divisor = torch.where(spread == 0, 1.0, spread)
    sixths = torch.where(
        (red >= green) & (red >= blue),
        (green - blue) / divisor,
        torch.where(
            green >= blue, 2 + (blue - red) / divisor, 4 + (red - green) / divisor
        ),
    )
    sixths = sixths + 6 * turns

    def channel(offset):
        distance = torch.remainder(offset + sixths, 6)
        part = torch.minimum(distance, 4 - distance).clamp(0.0, 1.0)
        return largest - spread * part

    return torch.cat([channel(5), channel(3), channel(1)], dim=1)


# Transformation of kornia -> its numbers, and itself.
_STEPS = {
    "RandomAffine": (_affine_numbers, _warp),
    "RandomGaussianBlur": (_blur_numbers, _blur),
    "RandomContrast": (_contrast_numbers, _contrast),
    "RandomResizedCrop": (_crop_numbers, _warp),
    "RandomHorizontalFlip": (_no_numbers, _flip),
    "RandomRotation": (_affine_numbers, _warp),
    "ColorJitter": (_jitter_numbers, _jitter),
    "RandomGrayscale": (_no_numbers, _greyed),
}


def numbers_of_step(module, drawn, shape):
    """What a transformation of a batch of a shape needs on its device.

    Parameters
    ----------
    module : torch.nn.Module
        One of kornia's.
    drawn : dict
        Its numbers of the batch, on the CPU.
    shape : tuple of int
        Shape of the batch.

    Returns
    -------
    numbers : list of tensors on the CPU
        Whether each image is transformed, and how.
    """
    is_applied = drawn["batch_prob"] > 0.5
    drawn = {name: _for_all(tensor, is_applied) for name, tensor in drawn.items()}
    find_numbers, _ = _STEPS[type(module).__name__]
    return [is_applied, *find_numbers(module, drawn, shape)]


def _for_all(tensor, is_applied):
    """A tensor with an entry for each image.

    kornia before 0.9 draws for the images that are transformed.
    """
    n_applied = int(is_applied.sum())
    if n_applied == len(is_applied) or len(tensor) != n_applied:
        return tensor
    for_all = tensor.new_ones((len(is_applied), *tensor.shape[1:]))
    for_all[is_applied] = tensor
    return for_all


def apply_step(module, drawn, images, is_applied, *numbers):
    """Images that are transformed, by numbers on their device.

    Parameters
    ----------
    module, drawn
        As in `numbers_of_step`.
    images : tensor of shape (n, channels, height, width)
        The images.
    is_applied, *numbers : tensors
        What `numbers_of_step` returned, on the device.

    Returns
    -------
    images : tensor of the same shape
        The images.
    """
    _, transform = _STEPS[type(module).__name__]
    changed = transform(module, drawn, images, *numbers)
    return torch.where(is_applied[:, None, None, None], changed, images)
