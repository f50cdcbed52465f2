"""What the product of audits takes from the library below it."""

import re
from importlib import import_module

import pytest

from tests import house

FILES = house.files(house.PACKAGE / "audit")


def documented_modules():
    """The modules that the page of the API lists."""
    page = (house.ROOT / "doc" / "api.rst").read_text(encoding="utf-8")
    return set(re.findall(r"^   (skvalue[a-z_.]*)$", page, re.MULTILINE))


@pytest.mark.parametrize("path", FILES, ids=house.short)
def test_audit_imports_documented_names_and_tools_alone(path):
    modules = documented_modules()
    assert "skvalue.labels" in modules
    for _, name, _ in house.imported(path):
        parts = name.split(".")
        if parts[0] != "skvalue" or parts[1:2] in (["audit"], ["_utils"]):
            continue
        if name in modules:
            continue
        module = ".".join(parts[:-1])
        assert module in modules, f"{name} is of no module that doc/api.rst lists"
        assert parts[-1] in import_module(module).__all__, f"{name} is not public"
