"""Versions of skvalue and of the packages that it can use."""

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version


def show_versions():
    """Print the versions of Python, the system, skvalue and the packages it can use.

    Examples
    --------
    >>> import skvalue
    >>> skvalue.show_versions()
    python: 3...
    skvalue: 0.1...
    """
    packages = {
        re.match(r"[\w.-]+", requirement).group()
        for requirement in requires("skvalue") or ()
        if not re.search(r"extra == .(test|doc)\b", requirement)
    }
    packages.discard("skvalue")  # extras require each other
    print(f"python: {platform.python_version()}")
    print(f"system: {platform.platform()}")
    for name in ["skvalue", *sorted(packages)]:
        try:
            print(f"{name}: {version(name)}")
        except PackageNotFoundError:
            print(f"{name}: not installed")
