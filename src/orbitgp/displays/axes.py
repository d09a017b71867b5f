"""The border with matplotlib, which is imported when something is drawn."""

from typing import Any

from orbitgp.errors import InputError


def axes_for(ax: Any, size: tuple[float, float] = (6.4, 4.0)) -> Any:
    """The axes that were given, or new ones of this size in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise InputError('plots need matplotlib: pip install "orbitgp[plots]"') from None
    return plt.subplots(figsize=size, layout="constrained")[1]
