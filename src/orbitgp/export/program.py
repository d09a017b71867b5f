"""A program put together from our own text, with nothing filled in but numbers and fixed names."""

from collections.abc import Mapping, Sequence

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

OURS = {"math.": "import math", "@dataclass": "from dataclasses import dataclass"}
"""Lines that import from Python itself, by a part of the text that needs them."""

APART = "\n\n\n"


def program(
    steps: Sequence[Step],
    *,
    header: str,
    imports: Mapping[str, str],
    helpers: Mapping[str, str],
    classes: Mapping[str, str],
    rest: str,
) -> str:
    """Source text with the helpers, classes and imports that these steps use, and no others.

    `imports` are lines by a part of the text that needs them, `helpers` functions by their names.
    """
    parts = [classes[kind].strip() for kind in dict.fromkeys(step.kind for step in steps)]
    for name, text in helpers.items():
        if any(f" {name}(" in part for part in parts):
            parts.insert(0, text.strip())
    body = APART.join([*parts, _calls(steps), rest.strip()])
    groups = [[line for part, line in group.items() if part in body] for group in (OURS, imports)]
    steps_source = "\n\n".join("\n".join(group) for group in groups if group)
    after = APART if parts else "\n\n"
    return f"{header}\n{steps_source}{after}{body}\n"


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
