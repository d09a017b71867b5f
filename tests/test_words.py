"""Readers meet the words of the field, not words that the project once made up for itself."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PRIVATE = (
    *("weigh", "weighs", "weighed", "weighing", "settle", "settles", "settled", "settling"),
    *("carry", "carries", "carried", "taught", "teach", "teaching", "lesson"),
    *("judge", "judges", "judged", "codes", "odds", "refusal", "refusals", "hearing", "course"),
    *("gone on with", "go on with", "goes on with", "of ours", "foretold", "vouch", "vouches"),
)
ORDINARY = (
    *("exit codes", "exit_codes", "log-odds", "log_odds", "of course"),
    *("the odds that one", "odds of 20 to 1"),  # what the evidence is, and is not
)
MARKDOWN = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs/tutorials").glob("*.py")),
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "src").rglob("*.jinja")),
]


def private_words(text):
    text = re.sub("|".join(map(re.escape, ORDINARY)), "", " ".join(text.lower().split()))
    return re.findall(rf"(?<![\w-])(?:{'|'.join(PRIVATE)})(?![\w-])", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_private_words(page):
    assert not private_words(page.read_text())


def test_words_are_found():
    assert private_words("The ranges are\nsettled, and gone on  with.") == [
        "settled",
        "gone on with",
    ]
    assert private_words("Exit codes of log-odds are not the odds that one of them is true.") == []


def long_lines(text):
    """Prose of more than 100 characters; tables, pictures, headings and code stay as they are."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    kept = (line for line in prose.splitlines() if not line.startswith(("|", "!", "#", "  ", "<")))
    return [line for line in kept if len(line) > 100]


def test_prose_wraps():
    found = {page.name: long_lines(page.read_text()) for page in MARKDOWN}
    assert not {name: lines for name, lines in found.items() if lines}
    assert long_lines("a " * 60 + "\n| " * 60 + "\n```\n" + "b" * 120 + "\n```\n") == ["a " * 60]
