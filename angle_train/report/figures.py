"""Figures of a report as SVG text, drawn off-screen by matplotlib. The same numbers give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluate.compare import WORD_OVERLAP, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["interval_figure", "learning_curve_figure", "similarity_figure"]

# Distinguishable with every common kind of colour blindness (Okabe and Ito).
_COLOURS = ("#56606b", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
_STYLE: Any = {
    "text.parse_math": False,  # names may hold dollar signs
    "svg.hashsalt": "angle-toolkit",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
}


def learning_curve_figure(curve: Sequence[Mapping[str, Any]], best_step: int) -> str:
    """Return the dev Spearman over the steps; the first point is the untouched backbone, a dashed line.

    Args:
        curve: See `summary.FitReport`.
        best_step: The step to mark.
    """
    steps = [point["step"] for point in curve]
    scores = [100 * point["dev"] for point in curve]
    with _figure(7.2, 3.2) as (figure, axes):
        axes[0].plot(steps, scores, marker="o", markersize=4, color=_COLOURS[2], label="during tuning")
        axes[0].axhline(scores[0], linestyle="--", linewidth=1, color=_COLOURS[1], label="backbone")
        best = steps.index(best_step) if best_step in steps else None
        if best is not None:
            (ring,) = axes[0].plot([best_step], [scores[best]], "o", color="black", label="best checkpoint")
            ring.set(markersize=10, markerfacecolor="none")
        axes[0].set_xlabel("step")
        axes[0].set_ylabel("mean dev Spearman × 100")
        axes[0].legend(frameon=False, fontsize=9)
        return _svg(figure)


def interval_figure(results: Sequence[Result]) -> str:
    """Return every result as a point with its 95 % interval, grouped by set of pairs."""
    models = list(dict.fromkeys(result.model for result in results))
    colour = {model: _COLOURS[i % len(_COLOURS)] for i, model in enumerate(models)}
    labelled: set[str] = set()
    with _figure(7.2, 0.8 + 0.28 * len(results)) as (figure, axes):
        ticks = []
        for row, result in enumerate(results):
            value = 100 * result.score.value
            reach = [[value - 100 * result.score.low], [100 * result.score.high - value]]
            axes[0].errorbar(
                [value], [row], xerr=reach, fmt="s" if result.model == WORD_OVERLAP else "o",
                color=colour[result.model], capsize=3,
                label=None if result.model in labelled else result.model,
            )  # fmt: skip
            labelled.add(result.model)
            ticks.append(result.pairs if row == 0 or results[row - 1].pairs != result.pairs else "")
        axes[0].set_yticks(range(len(results)), ticks)
        axes[0].invert_yaxis()
        axes[0].grid(axis="x", linewidth=0.5, alpha=0.5)
        axes[0].set_xlabel("Spearman × 100, 95 % interval")
        axes[0].legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return _svg(figure)


def similarity_figure(gold: NDArray[np.float64], columns: Mapping[str, NDArray[np.float64]]) -> str:
    """Return, for every model, the similarity of each pair over its gold score: a rising cloud is good.

    Args:
        gold: Gold scores (B,), 0..1.
        columns: Similarities (B,) by model name.
    """
    # Pairs with equal scores would hide each other; a fixed jitter spreads them.
    jitter = np.random.default_rng(0).uniform(-0.012, 0.012, len(gold))
    with _figure(3.6 * len(columns), 3.2, panels=len(columns)) as (figure, axes):
        for panel, (name, similarity), colour in zip(axes, columns.items(), _COLOURS[1:], strict=False):
            panel.scatter(gold + jitter, similarity, s=9, alpha=0.45, color=colour, linewidths=0)
            panel.set_title(name)
            panel.set_xlabel("gold score")
            panel.set_xlim(-0.04, 1.04)
        axes[0].set_ylabel("cosine similarity")
        return _svg(figure)


@contextmanager
def _figure(width: float, height: float, panels: int = 1) -> Iterator[tuple[Figure, list[Axes]]]:
    """Yield a figure and its panels, without touching the caller's matplotlib."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        yield figure, list(figure.subplots(1, panels, squeeze=False, sharey=True)[0])


def _svg(figure: Figure) -> str:
    """Return the figure as an SVG element without XML header or date."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]
