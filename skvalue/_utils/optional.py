"""Modules of the extras."""

from importlib import import_module


def import_optional(module, what, extra="report"):
    """The module; without it an ImportError with the pip command of its extra.

    ``what`` says in the error what needs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0].replace("PIL", "pillow")
        raise ImportError(
            f"{what} needs {library}: pip install 'skvalue[{extra}]'."
        ) from error
