"""SVM-GSU, figure 6: ones against sevens for 25 to 6,000 images of each, on D3 and D4.

As in the paper, the fraction of variance kept is 0.85 on D3 and 0.95 on D4. The optimistic sphere,
ten plain fits for each of its own, is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from common import LEGEND, Options, Search, compare, format_scores, run_script, standard_error
from loaders import digits
from mnist import SHIFTED, SHIFTS, make_run, methods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from common import Method, Run

FRACTIONS = {"D3": 0.85, "D4": 0.95}
QUICK = {25: 3, 50: 3, 100: 2}  # runs by images of each digit
FULL = {25: 20, 50: 20, 100: 10, 500: 3, 1000: 3, 3000: 2, 6000: 1}


def experiment(options: Options) -> None:
    """Print a table for each size, and draw figure 6."""
    data, sizes = digits(), QUICK if options.quick else FULL
    search = Search((0.01, 0.1, 1.0))
    print(f"Figure 6: C by 3-fold cross-validation\n{LEGEND}\n")
    figure, save = options.figure("mnist_figure6", (12, 4.8))
    for axes, (name, fraction) in zip(figure.subplots(1, 2), FRACTIONS.items(), strict=True):
        contestants: dict[str, Method] = methods((fraction,))
        del contestants["sphere"]
        curves: dict[str, list[tuple[float, float]]] = {key: [] for key in contestants}
        for size, n_runs in sizes.items():

            def runs(name: str = name, size: int = size, n_runs: int = n_runs) -> Iterator[Run]:
                for number in range(n_runs):
                    rng = np.random.default_rng((options.seed, size, number))
                    yield make_run(data, SHIFTS[name], size, rng, SHIFTED)

            results = compare(contestants, runs(), search)
            table = format_scores(contestants, results, search)
            print(f"{name}, {size} images of each digit, {n_runs} runs\n{table}\n", flush=True)
            for key, scores in results.items():
                value = scores.score()
                curves[key].append((float(value.mean()), standard_error(value)))
        for key, curve in curves.items():
            means, bars = np.transpose(curve)
            style = {"marker": "o", "ms": 4, "capsize": 3}
            axes.errorbar(list(sizes), means, bars, label=contestants[key].title, **style)
        axes.set(xscale="log", xlabel="images of each digit", ylabel="test accuracy", title=name)
        axes.set_xticks(list(sizes), [f"{size:,}" for size in sizes], minor=False)
        axes.set_xticks([], minor=True)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    save()


if __name__ == "__main__":
    run_script(experiment, __doc__)
