"""A folder of pictures in one folder for each label, as a table and as arrays."""

import os
import warnings

import numpy as np

from ..._utils.optional import import_optional
from ...exceptions import ParameterError

LABEL = "label"  # name of the target of such a table
FOR_MODELS = 16  # pixels of a side, without an embedding
SHOWN = 64
_ENDINGS = (
    ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff",
)  # fmt: skip


def is_folder(path):
    """Whether a path is a folder, which may hold pictures."""
    return os.path.isdir(path)


def image_files(path, max_rows):
    """The pictures of a folder, and their labels, the names of its folders.

    A list of pairs, sorted by label and name; hidden files are left out.
    """
    pairs = []
    for label in sorted(os.listdir(path)):
        folder = os.path.join(path, label)
        if label.startswith(".") or not os.path.isdir(folder):
            continue
        for place, _, names in sorted(os.walk(folder)):
            inside = os.path.relpath(place, path).replace(os.sep, "/")
            for name in sorted(names):
                is_picture = os.path.splitext(name)[1].lower() in _ENDINGS
                if is_picture and not name.startswith("."):
                    pairs.append((f"{inside}/{name}", label))
    if not pairs:
        raise ParameterError(
            "path",
            "must hold one folder for each label, with pictures "
            f"({', '.join(_ENDINGS)}). Got none.",
            subject="the folder",
        )
    if len(pairs) > max_rows:
        raise ParameterError(
            "max_rows",
            f"the folder must have at most {max_rows} pictures. Got {len(pairs)}.",
            "Pass {} to read it.",
            [("max_rows", len(pairs))],
            subject="",
        )
    return pairs


def read_images(path, names, side):
    """Pictures of a folder as an array (n_pictures, side, side, 3) of bytes.

    Each is turned as its camera says, and made a square.
    """
    image_module = import_optional("PIL.Image", "pictures")
    turned = import_optional("PIL.ImageOps", "pictures").exif_transpose
    pictures = np.empty((len(names), side, side, 3), dtype=np.uint8)
    for i, name in enumerate(names):
        try:
            with warnings.catch_warnings(action="ignore"):
                # Of pictures of very many pixels, from small files.
                warnings.simplefilter("error", image_module.DecompressionBombWarning)
                with image_module.open(os.path.join(path, name)) as picture:
                    picture.draft("RGB", (2 * side, 2 * side))
                    small = turned(picture).convert("RGB").resize((side, side))
        except Exception as error:  # whatever a file of a stranger leads to
            raise ParameterError(
                "path", f"must be a whole picture. Got {error}.", subject=repr(name)
            ) from None
        pictures[i] = np.asarray(small)
    return pictures
