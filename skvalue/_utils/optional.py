"""Modules of the extras."""

from importlib import import_module


def needed(module, what, extra="report"):
    """The module; without it an ImportError that says what needs it, and how to install
    it."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0].replace("PIL", "pillow")
        raise ImportError(
            f"{what} needs {library}: pip install 'skvalue[{extra}]'."
        ) from error
