"""HTML read strictly: every tag is closed by its own, and nothing comes from elsewhere."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "br"}


@dataclass
class Page:
    """What a page is made of."""

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""


class _Strict(HTMLParser):
    def __init__(self):
        super().__init__()
        self.page, self.open = Page(), []

    def handle_starttag(self, tag, attrs):
        self.page.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.page.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.page.text += data


def parse(html):
    parser = _Strict()
    parser.feed(html)
    parser.close()
    assert not parser.open, f"{parser.open} never closed"
    # as browsers show it; a space that does not break stays
    parser.page.text = re.sub(r"[ \n]+", " ", parser.page.text)
    return parser.page
