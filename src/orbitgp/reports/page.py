"""The border with Jinja: values become HTML, and each of them is escaped."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from orbitgp.reports import words

FILTERS = (
    *(words.duration, words.kind_in_words, words.number, words.percent, words.plus_minus),
    *(words.short, zip),
)

ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {function.__name__: function for function in FILTERS}


def render(template: str, **values: Any) -> str:
    """A template filled with these values."""
    return ENVIRONMENT.get_template(template).render(**values)
