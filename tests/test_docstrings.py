"""Every public name is documented in full, and its examples run."""

import doctest
import inspect

import pytest
from numpydoc.validate import validate

import orbitgp

NAMES = [name for name in orbitgp.__all__ if name != "mean_pairs"]  # a value, not a class

IGNORED = {
    "GL01": "the summary begins on the line of the quotes",
    "ES01": "one sentence may be enough",
    "SA01": "not everything has relatives",
    "EX01": "examples are asked for below, for names and not for methods",
    "SS06": "a summary may need two lines",
    "RT03": "a description need not begin with a capital where it is a symbol",
    "PR08": "nor that of a parameter",
    "PR09": "nor end with a period where it is a formula",
    "SS05": "classes are nouns",
}


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch):
    """Examples may name files."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("in_a_folder", "untyped")
def test_examples_run(name):
    found = getattr(orbitgp, name)
    examples = doctest.DocTestFinder(recurse=False).find(found, name, globs={})
    assert sum(len(example.examples) for example in examples) > 0, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in examples:
        failed, _ = runner.run(example)
        assert failed == 0


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_are_whole(name):
    found = getattr(orbitgp, name)
    # what torch.nn.Module and Exception take is no matter of ours
    inherited = inspect.isclass(found) and "__init__" not in vars(found)
    ignored = {*IGNORED, *(["PR01"] if inherited else [])}
    errors = validate(f"orbitgp.{name}")["errors"]
    assert not [error for error in errors if error[0] not in ignored]
