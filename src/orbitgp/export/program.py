"""A program copied from our own templates, with nothing filled in but numbers and fixed names."""

import ast
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from orbitgp.export.step import Step

NAMES = {
    "affine": "Affine",
    "mirror": "Mirror",
    "quarter turns": "QuarterTurns",
    "cyclic shifts": "CyclicShifts",
    "intensity": "Intensity",
    "noise": "GaussianNoise",
    "local deformation": "LocalDeformation",
}
"""The class of each kind of step."""

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Template:
    """The docstring of a Python file, its imports and its definitions, by the names they bind."""

    docstring: str
    imports: dict[str, str]
    definitions: dict[str, str]


def program(library: str, steps: Sequence[Step], remarks: Sequence[str]) -> str:
    """Return source with `LearnedAugmentation` and the definitions that it and the steps use.

    All text is copied from `templates`, except for numbers and fixed names in `STEPS`.
    """
    own, shared = read_template(f"{library}.py"), read_template("steps.py")
    definitions, imports = shared.definitions | own.definitions, shared.imports | own.imports
    used = _used({"LearnedAugmentation", *(NAMES[step.kind] for step in steps)}, definitions)
    lines = [line for name, line in imports.items() if name in used]
    parts = [text for name, text in definitions.items() if name in used]
    about = header(library, steps, remarks, " ".join(own.docstring.split()))
    return f"{about}\n" + "\n\n\n".join([_grouped(lines), *parts, _calls(steps)]) + "\n"


def read_template(name: str) -> Template:
    """Read a file of `templates` without executing it; imports of orbitgp are not kept."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    imports, definitions = {}, {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= {alias.name: ast.unparse(node) for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            definitions[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    foreign = {name: line for name, line in imports.items() if "orbitgp" not in line}
    return Template(ast.get_docstring(tree) or "", foreign, definitions)


def _grouped(lines: Sequence[str]) -> str:
    """Return these imports, those of the standard library first."""
    standard = [line for line in lines if line.split()[1] in sys.stdlib_module_names]
    foreign = [line for line in lines if line not in standard]
    return "\n\n".join("\n".join(group) for group in (standard, foreign) if group)


def _used(names: Set[str], definitions: Mapping[str, str]) -> Set[str]:
    """Return these names and all names that their definitions use, directly or not."""
    trees = [ast.parse(definitions[name]) for name in names if name in definitions]
    found = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names if found <= names else _used(names | found, definitions)


def header(library: str, steps: Sequence[Step], remarks: Sequence[str], notes: str) -> str:
    """What the file is, in words, as its docstring."""
    listed = [f"{place}. {step.words()}" for place, step in enumerate(steps, 1)]
    listed = listed or ["nothing: images stay as they are"]
    paragraphs = [
        f'"""Augmentation that was learned from data, as a transform for {library}.',
        "The steps, in this order:",
        "\n".join(wrapped(f"  {line}", indent=5) for line in listed),
        *(wrapped(line) for line in remarks),
        wrapped(
            "The ranges are those of an orbit of orbitgp: the changes that leave labels as they "
            "are, as far as training data show. Noise and brightness are in units of the largest "
            "value of the training images, so images are expected to have values from 0 to 1."
        ),
        wrapped(notes),
    ]
    return "\n\n".join(paragraphs) + '\n"""\n'


def wrapped(text: str, width: int = 99, indent: int = 0) -> str:
    """Lines of at most this many characters, broken at spaces."""
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append(" " * indent + word)
        else:
            lines[-1] += f" {word}" if lines != [""] else word
    return "\n".join(lines)


def _calls(steps: Sequence[Step]) -> str:
    """STEPS = (…), one call for each."""
    calls = "".join(f"    {_call(step)},\n" for step in steps)
    return f"STEPS = (\n{calls})" if calls else "STEPS = ()"


def _call(step: Step) -> str:
    """The class with its numbers, each on a line of its own."""
    given: dict[str, object] = {}
    for parameter in step.parameters:
        if parameter.distribution != "choice":
            several = "uniform" in parameter.distribution
            own = parameter.numbers if several else parameter.numbers[0]
            given[parameter.name.replace("-", "_").replace(" ", "_")] = own
    given |= {name: f'"{v}"' if isinstance(v, str) else v for name, v in step.settings}
    lines = [f"        {name}={value},\n" for name, value in given.items()]
    return f"{NAMES[step.kind]}(\n{''.join(lines)}    )" if lines else f"{NAMES[step.kind]}()"
