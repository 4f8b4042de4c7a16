"""The front-end's modules as one script."""

import re

import pytest

from topicscope.pages.scripts import EXPORT, IMPORT, STATIC, bundled, source

MODULES = sorted(path.name for path in STATIC.glob("*.js"))


@pytest.mark.parametrize("entry", MODULES)
def test_a_bundle_defines_every_name_once_and_before_it_is_used(entry: str) -> None:
    text = bundled(entry)
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
    made = [
        name
        for names in re.findall(r"^const \{ (.*) \} = \(\(\) => \{$", text, re.MULTILINE)
        for name in names.split(", ")
    ]
    assert len(made) == len(set(made))
    for names, _ in IMPORT.findall(source(entry)):
        for name in names.split(", "):
            assert name in made
            assert text.index(f"const {name} =") < text.rindex(name)


@pytest.mark.parametrize("module", MODULES)
def test_every_import_names_what_its_module_exports(module: str) -> None:
    lines = re.findall(r"^import .*", source(module), re.MULTILINE)
    assert len(lines) == len(IMPORT.findall(source(module)))  # no form of import that a bundle would leave
    for names, needed in IMPORT.findall(source(module)):
        assert set(names.split(", ")) <= set(EXPORT.findall(source(needed)))
