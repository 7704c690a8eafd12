"""The command ``halosvm``: demo, bench, and train, predict, evaluate on tables with error bars.

Tables go in (see `halosvm.files.table`), a model file or a table of predictions comes out. Trouble
with a table, a model file or an option is told in one line on standard error, with exit status 2.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from halosvm import __version__
from halosvm.commands import benchmark
from halosvm.commands.tables.applying import evaluate, predict
from halosvm.commands.tables.tasks import LOSSES
from halosvm.commands.tables.training import train

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``halosvm``.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the name of the command; by default those of this process.

    Returns
    -------
    int
        Exit status: 0, or 2 after an error, or 130 after Ctrl-C.
    """
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`head`, say) has left; without this Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        message = " ".join(str(error).split())
        print(f"halosvm {arguments.command}: error: {message}", file=sys.stderr)
        return 2
    return 0


def _demo(arguments: argparse.Namespace) -> None:
    # Here, not above: data sets and statistics load slowly, and no other command needs them.
    from halosvm.commands import demo

    make = demo.Setup.quick if arguments.quick else demo.Setup
    splits = {} if arguments.splits is None else {"splits": arguments.splits}
    demo.main(make(**splits, seed=arguments.seed), arguments.output)


def _names(text: str) -> list[str]:
    """Split a list such as ``a,b,"c,d"``."""
    return next(csv.reader([text]), [""])


def _c_value(text: str) -> float | str:
    if text == "cv":
        return text
    with contextlib.suppress(ValueError):
        if 0 < float(text) < np.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a positive number nor cv")


def _components(text: str) -> int | str:
    return text if text == "bic" else int(_at_least(1)(text))


def _at_least(least: int) -> Any:
    def integer(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    return integer


def _add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", help="CSV or TSV file with a header line, also as .gz")
    parser.add_argument(
        "--std-suffix",
        default="_std",
        metavar="S",
        help="column NAME+S holds the standard deviations of NAME (default: %(default)s)",
    )
    parser.add_argument(
        "--variance-suffix",
        default="",
        metavar="S",
        help="column NAME+S holds the variances of NAME (default: none does)",
    )


def _add_label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--label",
        "--target",
        required=True,
        metavar="COLUMN",
        help="the column of the classes or, of a regression, of the values; their errors are in a "
        "column named as for features",
    )


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add what says how large errors and residuals are; None stands for the machine's default."""
    for option, default, text in (
        ("--radius", "1", "standard deviations that worst_case and best_case count"),
        (
            "--norm",
            "2",
            "of their errors: 2 for ellipsoids, inf for boxes, 1 for one error at a time",
        ),
        ("--epsilon", "0.1", "residuals up to here cost nothing, in the unit of the values"),
        ("--quantile", "0.5", "of pinball, between 0 and 1"),
        ("--delta", "1", "where huber goes over to lines, in the unit of the values"),
    ):
        parser.add_argument(option, type=float, metavar="X", help=f"{text} (default: {default})")
    parser.add_argument(
        "--error-scale",
        type=float,
        default=1.0,
        metavar="X",
        help="multiply all errors of features by this (default: 1)",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="halosvm", description="Support vector machines for data with error bars."
    )
    parser.add_argument("--version", action="version", version=f"halosvm {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    sub = commands.add_parser("demo", help="what errors do for a classifier, on real data")
    sub.set_defaults(run=_demo)
    sub.add_argument("--splits", type=_at_least(1), help="number of random splits (default: 10)")
    sub.add_argument("--seed", type=_at_least(0), default=0)
    sub.add_argument("--output", default="halosvm_demo.png", metavar="FILE.png")
    sub.add_argument("--quick", action="store_true", help="three splits, a coarser search for C")

    sub = commands.add_parser("bench", help="time halosvm against named rivals, on made-up data")
    sub.set_defaults(run=benchmark.run)
    benchmark.add_arguments(sub)

    sub = commands.add_parser("train", help="fit a model to a table with labels or values")
    sub.set_defaults(run=train)
    _add_table(sub)
    _add_label(sub)
    sub.add_argument(
        "--task",
        choices=["classification", "regression"],
        default="classification",
        help="what the column of labels is: classes (the default), or values",
    )
    sub.add_argument(
        "--features", type=_names, metavar="A,B,...", help="default: all other columns"
    )
    sub.add_argument("--drop", type=_names, default=[], metavar="A,B,...", help="not a feature")
    sub.add_argument("--C", type=_c_value, default="cv", help='a number, or "cv" (the default)')
    sub.add_argument("--folds", type=_at_least(2), default=5, help="default: %(default)s")
    sub.add_argument(
        "--loss",
        choices=LOSSES,
        metavar="LOSS",
        help="of UncertainSVC (default: expected_hinge), of a regression of UncertainSVR "
        f"(default: epsilon_insensitive); one of {', '.join(LOSSES)}",
    )
    _add_sizes(sub)
    sub.add_argument(
        "--errors",
        choices=["distribution", "measurement"],
        default="distribution",
        help="what an error means: each row is a distribution, or a measurement of true values, "
        "which are estimated first (default: %(default)s)",
    )
    sub.add_argument(
        "--components",
        type=_components,
        default=1,
        metavar="K",
        help='Gaussians in the population of true values, or "bic" (default: %(default)s)',
    )
    sub.add_argument("--class-weight", choices=["balanced"], help="give classes equal weight")
    sub.add_argument(
        "--standardise",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="train in units of each feature's spread; the model file is in the table's units",
    )
    sub.add_argument("--seed", type=_at_least(0), default=0)
    sub.add_argument("--output", default="model.json", metavar="FILE", help="default: %(default)s")

    sub = commands.add_parser("predict", help="tell labels or values of the rows of a table")
    sub.set_defaults(run=predict)
    sub.add_argument("model", help="file that train wrote")
    _add_table(sub)
    sub.add_argument("--output", metavar="FILE", help="CSV file (default: standard output)")

    sub = commands.add_parser("evaluate", help="compare predictions with labels or values")
    sub.set_defaults(run=evaluate)
    sub.add_argument("model", help="file that train wrote")
    _add_table(sub)
    _add_label(sub)
    return parser
