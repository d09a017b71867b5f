"""Test error against the number of training images."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from benchmarks.suite.contests import Result
from benchmarks.suite.methods import METHODS, methods_for
from experiments.splits import IMAGES, SIZES


def draw(results: Sequence[Result], path: Path) -> bool:
    """A line for each method, a panel for each data set; nothing if there is no result."""
    import matplotlib.pyplot as plt

    names = {source.name for source in IMAGES}
    found = [one for one in results if one["data"] in names and "error" in one]
    if not found:
        return False
    figure, axes = plt.subplots(2, 3, figsize=(9, 5.4), sharex=True, layout="constrained")
    colours = {method.name: f"C{place}" for place, method in enumerate(METHODS)}
    for source, ax in zip(IMAGES, axes.flat, strict=True):
        for method in methods_for(source):
            line = curve([one for one in found if one["data"] == source.name], method.name)
            style = "-" if method.name.endswith("ours") else "--"
            dots = {"color": colours[method.name], "marker": "o", "markersize": 3}
            ax.plot([n for n, _ in line], [e for _, e in line], style, label=method.name, **dots)
        # a panel without errors above 0 has no logarithm
        positive = any(one["data"] == source.name and one["error"] > 0 for one in found)
        ax.set(title=source.name, xscale="log", yscale="log" if positive else "linear")
        ax.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    figure.supxlabel("training images")
    figure.supylabel("test error, %")
    handles = axes.flat[-1].get_legend_handles_labels()  # photographs have every method
    figure.legend(*handles, loc="outside lower center", ncols=5, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return True


def curve(results: Sequence[Result], method: str) -> list[tuple[int, float]]:
    """Sizes, and errors in per cent averaged over seeds."""
    by_size: dict[int, list[float]] = {}
    for found in results:
        if found["method"] == method:
            by_size.setdefault(found["size"], []).append(100 * found["error"])
    return [(size, mean(errors)) for size, errors in sorted(by_size.items())]
