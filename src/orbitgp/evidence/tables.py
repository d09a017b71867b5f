"""Results as tables: for people, and for pandas."""

from collections.abc import Mapping, Sequence
from typing import Any

from orbitgp.errors import InputError


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side, as wide as they need; numbers are aligned to the right."""
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(_is_number(cell) for cell in column[1:]) for column in columns]
    lines = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in (head, *rows)
    ]
    return "\n".join(lines)


def _is_number(cell: str) -> bool:
    return not cell or cell[0] in "+−-0123456789"


def data_frame(rows: Sequence[Mapping[str, Any]], index: str) -> Any:
    """Of pandas, which is imported only here."""
    try:
        import pandas as pd
    except ImportError:
        raise InputError(
            "frame() needs pandas: pip install pandas; records() has the same as dictionaries"
        ) from None
    return pd.DataFrame(rows).set_index(index)
