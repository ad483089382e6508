"""Figures of a data set: token lengths, repositories, overlap. The same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.errors import MissingExtraError
from angle_data.gis.build.report import LIMIT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS_A_VIOLIN = 20_000
_REPOSITORIES = 60


def draw_figures(
    folder: Path, lengths: Mapping[str, Sequence[int]], report: Mapping[str, Any]
) -> tuple[str, ...]:
    """Write the figures to `folder` and return their names; `lengths` are token counts by split.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("drawing figures", "train") from None
    folder.mkdir(parents=True, exist_ok=True)
    with _panel(folder / "token-lengths.png", 1.6 * len(lengths) + 3, 4) as axes:
        _violins(axes, lengths, report["tokens"])
    repositories = list(report["repositories"].items())[:_REPOSITORIES]
    with _panel(folder / "repositories.png", 7, 0.24 * len(repositories) + 1.2) as axes:
        _bars(axes, repositories)
    with _panel(folder / "overlap.png", 5, 3.4) as axes:
        _overlap(axes, report["overlap"])
    return "token-lengths.png", "repositories.png", "overlap.png"


@contextmanager
def _panel(path: Path, width: float, height: float) -> Iterator[Axes]:
    """Yield axes to draw on, written to `path` at the end, without touching the caller's matplotlib."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(width, height), layout="constrained", dpi=120)
        FigureCanvasAgg(figure)
        yield figure.subplots()
        figure.savefig(path, format="png", metadata={"Software": None})


def _violins(axes: Axes, lengths: Mapping[str, Sequence[int]], tokens: Mapping[str, Any]) -> None:
    import numpy as np

    # On a logarithmic scale; a few issues hold whole log files.
    drawn = [
        np.log10(np.maximum(np.array(found[:: max(1, len(found) // _POINTS_A_VIOLIN)]), 1))
        for found in lengths.values()
    ]
    # A density needs two different values.
    violins = [i for i, found in enumerate(drawn) if len(set(found.tolist())) > 1]
    if violins:
        axes.violinplot([drawn[i] for i in violins], positions=violins, widths=0.8, showmedians=True)
    axes.axhline(np.log10(LIMIT), color="tab:red", linewidth=1)
    axes.text(len(drawn) - 0.45, np.log10(LIMIT), f"{LIMIT}", color="tab:red", va="bottom")
    names = [f"{name}\n{tokens[name][f'texts_over_{LIMIT}']} % > {LIMIT}" for name in lengths]
    axes.set_xticks(range(len(drawn)), names)
    axes.set_xlim(-0.6, len(drawn) - 0.2)
    ticks = [i for i in range(7) if not drawn or i <= max(float(found.max()) for found in drawn) + 1]
    axes.set_yticks(ticks, [f"{10**i:,}" for i in ticks])
    axes.set_ylabel("tokens a text")
    axes.set_title(tokens["tokenizer"], fontsize=8)


def _bars(axes: Axes, repositories: list[tuple[str, Mapping[str, int]]]) -> None:
    names = [name for name, _ in repositories]
    positives = [counts.get("positives", 0) for _, counts in repositories]
    negatives = [counts.get("negatives", 0) for _, counts in repositories]
    axes.barh(range(len(names)), positives, label="positives")
    axes.barh(range(len(names)), negatives, left=positives, label="negatives")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("pairs")
    # Above the bars, which may fill the whole width.
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


def _overlap(axes: Axes, overlap: Mapping[str, Mapping[str, float]]) -> None:
    width = 0.8 / max(len(overlap), 1)
    for i, (name, found) in enumerate(overlap.items()):
        places = [j + (i - (len(overlap) - 1) / 2) * width for j in range(len(found))]
        axes.bar(places, list(found.values()), width, label=name)
        axes.set_xticks(range(len(found)), list(found))
    axes.set_ylabel("mean Jaccard index, %")
    axes.legend(frameon=False)
