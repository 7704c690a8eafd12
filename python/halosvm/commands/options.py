"""The words of the command ``halosvm``: its parser, and what each option says."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING

from halosvm import __version__
from halosvm.checks.error_names import KINDS
from halosvm.commands import benchmark
from halosvm.commands.choices import (
    ESTIMATORS,
    KERNELS,
    LOSSES,
    METHODS,
    RANKS,
)
from halosvm.commands.parser import Parser
from halosvm.commands.values import (
    approximation,
    at_least,
    c_value,
    components,
    folds,
    gamma,
    long_columns,
    names,
    of_feature,
    pair,
    parse_setting,
    positive,
    ranks,
    separator,
    told,
)
from halosvm.files.tables.opening import COVARIANCE_KINDS, FORMATS
from halosvm.files.tables.roles import parse_pattern
from halosvm.files.tables.room import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_CODES = """\
exit status: 0; 1 for a table, a model file or an output that cannot be used; 2 for options that
cannot; 130 after Ctrl-C; 141 when the reader of a pipe has left"""

_EXAMPLES = {
    None: """\
examples:
  halosvm demo
  halosvm doctor measurements.csv --label class
  halosvm train measurements.csv --label class --errors measurement --output model.json
  halosvm predict model.json new.csv --keep id > labels.csv
  halosvm evaluate model.json test.csv --label class
  halosvm next model.json new.csv --new-error 0.1
  halosvm COMMAND --help""",
    "doctor": """\
examples:
  halosvm doctor cells.csv
  halosvm doctor cells.csv --label diagnosis --test new.csv --figure cells.png
  halosvm doctor stars.fits --label type --drop name --group field --output model.json""",
    "train": """\
examples:
  halosvm train cells.csv --label diagnosis
  halosvm train stars.fits --label type --drop name --errors measurement --missing impute
  halosvm train catalogue.csv --label type --error flux=flux_sigma --errors-are variance
  halosvm train cells.csv --label diagnosis --kernel rbf --calibrate sigmoid
  halosvm train masses.tsv --task regression --label mass --loss huber
  halosvm train mean.dat --labels labels.dat --covariances cov.dat --lambda 0.001 --scale none
  halosvm train heart_scale --format svmlight --C 1 --scale none""",
    "predict": """\
examples:
  halosvm predict model.json new.csv
  halosvm predict model.json new.fits --keep id,name --output labels.parquet
  zcat new.csv.gz | halosvm predict model.json - | head""",
    "next": """\
examples:
  halosvm next model.json stars.csv --new-error 0.02 --keep name
  halosvm next model.json stars.csv --new-error flux=0.1 --new-error parallax=0.02 --cost flux=5
  halosvm next model.skops cells.csv --top 50 --output plan.csv""",
    "evaluate": """\
examples:
  halosvm evaluate model.json test.csv --label diagnosis
  halosvm evaluate model.json mean.dat --labels labels.dat --at 10,100""",
    "convert": """\
examples:
  halosvm convert stars.vot stars.parquet --label type --drop name
  halosvm convert mean.dat toy.npz --labels labels.dat --covariances cov.dat
  halosvm convert heart_scale heart.csv --format svmlight
  halosvm convert t.csv mean.dat --label y --to-labels labels.dat --to-covariances cov.dat""",
}


def make_parser(demo: Callable[..., None], show_config: Callable[..., None]) -> Parser:
    """Return the parser of the command line, with the functions of two commands."""
    parser = Parser(
        prog="halosvm",
        description="Support vector machines for data with error bars.",
        epilog=f"{_EXAMPLES[None]}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"halosvm {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")

    def add(name: str, run: Callable[..., None], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=text,
            description=text,
            epilog="\n\n".join([_EXAMPLES[name], EXIT_CODES]) if name in _EXAMPLES else EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=run)
        return sub

    sub = add("demo", demo, "what errors do for a classifier, on real data")
    sub.add_argument("--splits", type=at_least(1), help="number of random splits (default: 10)")
    sub.add_argument("--seed", type=at_least(0), default=0)
    sub.add_argument("--output", default="halosvm_demo.png", metavar="FILE.png")
    sub.add_argument("--quick", action="store_true", help="three splits, a coarser search for C")

    benchmark.add_arguments(
        add("bench", benchmark.run, "time halosvm against named rivals, on made-up data")
    )
    add("show-config", show_config, "which build of the core is in use, and versions")
    _add_doctor(add("doctor", _of_tables("doctor"), "what the errors of a table are worth"))
    _add_train(add("train", _of_tables("train"), "fit a model to a table with labels or values"))

    sub = add(
        "predict",
        _of_tables("predict"),
        "tell labels or values of the rows of a table",
    )
    sub.add_argument("model", help="file that train wrote")
    _add_table(sub)
    _add_columns(sub, features=False)
    _add_output(sub, None, "default: standard output, as CSV")

    sub = add(
        "evaluate",
        _of_tables("evaluate"),
        "compare predictions with labels or values",
    )
    sub.add_argument("model", help="file that train wrote")
    _add_table(sub)
    _add_label(sub)
    _add_weight(sub, "that of the training where it is there")
    _add_group(sub, "the column of what rows belong to: those of training are left out")
    sub.add_argument(
        "--at",
        type=ranks,
        metavar="K,...",
        help="numbers of first rows to give precision and recall of "
        f"(default: {','.join(map(str, RANKS))})",
    )

    _add_next(add("next", _of_tables("next_"), "which reading of which row to make next"))

    sub = add(
        "convert",
        _of_tables("convert"),
        "write features, errors and labels of a table in another format",
    )
    _add_table(sub)
    sub.add_argument("output", help="file to write, or - for standard output")
    _add_label(sub)
    _add_columns(sub, features=True)
    sub.add_argument("--task", choices=["classification", "regression"], default="classification")
    _add_to(sub)
    sub.add_argument("--to-labels", metavar="FILE", help="labels of SVM-GSU's three files")
    sub.add_argument(
        "--to-covariances", metavar="FILE", help="covariances of SVM-GSU's three files"
    )
    return parser


_MODULES = {
    "doctor": "examining",
    "train": "training",
    "predict": "predicting",
    "next_": "measuring",
    "evaluate": "evaluating",
    "convert": "converting",
}


def _of_tables(command: str) -> Callable[..., None]:
    """Return a command of tables, which is imported when it runs: machines load slowly."""

    def run(arguments: argparse.Namespace) -> None:
        module = import_module(f"halosvm.commands.tables.{_MODULES[command]}")
        getattr(module, command)(arguments)

    return run


def _add_table(parser: argparse.ArgumentParser, missing: str = "error") -> None:
    parser.add_argument(
        "table",
        help="CSV, TSV, Parquet, Feather, FITS, ECSV, VOTable, .npz, svmlight, or the means of "
        "SVM-GSU's three files; - for standard input",
    )
    group = parser.add_argument_group("reading the table")
    group.add_argument("--format", choices=FORMATS, help="default: by the ending of the name")
    group.add_argument("--separator", type=separator, metavar="S", help="one character, or tab")
    group.add_argument("--decimal", choices=[".", ","], default=".", help="decimal point")
    group.add_argument("--encoding", help="default: UTF-8")
    group.add_argument(
        "--comment",
        metavar="TEXT",
        help="lines that begin with this are left out (default: # above the header alone)",
    )
    group.add_argument(
        "--quote",
        choices=["double", "none"],
        help='whether " encloses cells or is a letter (default: double; with tabs, what fits)',
    )
    group.add_argument("--no-header", action="store_true", help="columns are called 1, 2, ...")
    group.add_argument(
        "--ignore-units", action="store_true", help="take numbers as they are, whatever their units"
    )
    group.add_argument(
        "--missing",
        choices=["error", "drop", "impute"],
        default=missing,
        help="missing cells: refuse them, leave out their rows, or, with --errors measurement, "
        "estimate them (default: %(default)s)",
    )
    group.add_argument(
        "--sentinel",
        type=float,
        action="append",
        default=[],
        metavar="X",
        help="a number that stands for a missing cell, such as -999; can be repeated",
    )
    group.add_argument(
        "--limit",
        type=pair,
        action="append",
        default=[],
        metavar="FEATURE=COLUMN",
        help="the column that says by < or > where numbers of a feature are limits, as cells such "
        "as <0.25 do; can be repeated",
    )
    group.add_argument(
        "--errors-in",
        type=told(parse_pattern),
        action="append",
        metavar="PATTERN",
        help="how error columns are called: _sigma, sigma_, MAG_{}=MAGERR_{} (can be repeated; "
        "default: _std, _err, _error, _e, e_, err_, MAGERR_, _err1 with _err2, _var, _ivar)",
    )
    group.add_argument(
        "--error",
        type=pair,
        action="append",
        default=[],
        metavar="FEATURE=COLUMN",
        help="the error column of one feature; can be repeated",
    )
    group.add_argument(
        "--errors-are",
        choices=KINDS,
        default="std",
        help="what error columns hold whose names do not say it (default: %(default)s)",
    )
    text = "a long table, with a row for each value of an object and a feature, and their columns"
    group.add_argument(
        "--long", type=long_columns, metavar="OBJECT,FEATURE,VALUE[,ERROR]", help=text
    )
    text = (
        "several values of an object and a feature: refuse them, or make one of them, weighted by "
    )
    text += "their errors or, without errors, with an error of how they differ (default: refuse)"
    group.add_argument("--repeats", choices=["refuse", "combine"], help=text)
    group.add_argument("--covariances", metavar="FILE", help="covariances of SVM-GSU's three files")
    text = "default: full where an entry stands beside the diagonal, else diagonal"
    group.add_argument("--covariances-are", choices=COVARIANCE_KINDS, help=text)
    text = "what the table may take, as 500M or 8G (default: half of the memory that is free)"
    group.add_argument("--memory", type=told(parse_size), metavar="SIZE", help=text)


def _add_label(parser: argparse.ArgumentParser) -> None:
    text = "the column of the classes or, of a regression, of the values; their errors are in a "
    text += "column named as for features"
    parser.add_argument("--label", "--target", metavar="COLUMN", help=text)
    parser.add_argument("--labels", metavar="FILE", help="labels of SVM-GSU's three files")


def _add_weight(parser: argparse.ArgumentParser, default: str) -> None:
    text = f"the column of how much each row counts, never a feature (default: {default})"
    parser.add_argument("--weight", metavar="COLUMN", help=text)


def _add_group(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--group", metavar="COLUMN", help=text)


def _add_columns(parser: argparse.ArgumentParser, *, features: bool) -> None:
    if features:
        parser.add_argument(
            "--features", type=names, metavar="A,B,...", help="default: all other columns"
        )
        parser.add_argument("--drop", type=names, default=[], metavar="A,B,...", help="no feature")
    parser.add_argument(
        "--keep", type=names, default=[], metavar="A,B,...", help="columns to write as they are"
    )


def _add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", choices=FORMATS, help="default: by the ending of the output")


def _add_output(parser: argparse.ArgumentParser, default: str | None, text: str) -> None:
    parser.add_argument("--output", default=default, metavar="FILE", help=text)
    _add_to(parser)


def _add_doctor(sub: argparse.ArgumentParser) -> None:
    _add_table(sub, missing="impute")
    _add_label(sub)
    _add_weight(sub, "all count alike")
    _add_group(sub, "the column of what rows belong to: rows of one are left out together")
    sub.add_argument("--features", type=names, metavar="A,B,...", help="default: all other columns")
    sub.add_argument("--drop", type=names, default=[], metavar="A,B,...", help="no feature")
    sub.add_argument("--test", metavar="TABLE", help="rows to be told later: are they like these?")
    sub.add_argument(
        "--output", metavar="FILE.skops", help="keep what was chosen, for predict and evaluate"
    )
    sub.add_argument("--figure", metavar="FILE.png", help="draw what was found (png, pdf, svg)")
    sub.add_argument("--seed", type=at_least(0), default=0)


def _add_next(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("model", help="file that train or doctor wrote")
    _add_table(sub)
    _add_columns(sub, features=False)
    for option, text in (
        ("--new-error", "standard deviation of a new reading (default: the median of each column)"),
        ("--cost", "what a reading costs (default: 1)"),
    ):
        both = "of all features, or of one, can be repeated"
        form = "X|FEATURE=X"
        sub.add_argument(
            option,
            type=of_feature,
            action="append",
            default=[],
            metavar=form,
            help=f"{text}, {both}",
        )
    sub.add_argument("--top", type=at_least(1), default=20, metavar="N", help="default: 20")
    text = "probability of another label that largest_error allows (default: %(default)s)"
    sub.add_argument("--epsilon", type=positive, default=0.05, metavar="P", help=text)
    sub.add_argument("--seed", type=at_least(0), default=0)
    _add_output(sub, None, "default: standard output, as CSV")


def _add_train(sub: argparse.ArgumentParser) -> None:
    _add_table(sub)
    _add_label(sub)
    _add_weight(sub, "all count alike")
    _add_group(
        sub,
        "the column of what rows belong to, such as a patient: rows of one are never on both sides "
        "of a split for C, scores and probabilities; never a feature",
    )
    sub.add_argument(
        "--batch",
        metavar="COLUMN",
        help="the column of what rows share an error of, such as a night or a plate, with --errors "
        "measurement; its form is --population batch_covariance=diagonal, isotropic, or full, the "
        "default; predict and evaluate need this column, too; never a feature",
    )
    sub.add_argument(
        "--task",
        choices=["classification", "regression"],
        help="what the column of labels is: classes, or values (default: classes, but many "
        "different numbers are asked about)",
    )
    sub.add_argument("--features", type=names, metavar="A,B,...", help="default: all other columns")
    sub.add_argument("--drop", type=names, default=[], metavar="A,B,...", help="no feature")
    sub.add_argument("--output", default="model.json", metavar="FILE", help="default: %(default)s")
    sub.add_argument("--seed", type=at_least(0), default=0)

    group = sub.add_argument_group("the model")
    group.add_argument(
        "--errors",
        choices=["distribution", "measurement"],
        help="what an error means: each row is a distribution, or a measurement of true values, "
        "which are estimated first (default: by the names of error columns: measurement, or "
        "distribution where all are called _std or _var)",
    )
    group.add_argument(
        "--components",
        type=components,
        default=1,
        metavar="K",
        help='Gaussians in the population of true values, or "bic" (default: %(default)s)',
    )
    group.add_argument(
        "--population",
        type=told(parse_setting),
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other parameter of EmpiricalBayes, which estimates the true values, such as "
        "reg_covar=1e-4; can be repeated",
    )
    group.add_argument(
        "--scale",
        choices=["standard", "none"],
        default="standard",
        help="train in units of each feature's spread; a linear model is kept in the table's",
    )
    group.add_argument("--estimator", choices=ESTIMATORS, help="default: by --task and --kernel")
    group.add_argument("--kernel", choices=KERNELS, help="default: linear")
    group.add_argument(
        "--approximate",
        type=approximation,
        metavar="fourier[:N]|nystroem[:N]",
        help="a linear machine on N features of the RBF kernel, for many rows (default N: 500)",
    )
    group.add_argument("--gamma", type=gamma, metavar="X", help="of kernels (default: scale)")
    group.add_argument("--degree", type=at_least(1), metavar="N", help="of poly (default: 3)")
    group.add_argument("--coef0", type=float, metavar="X", help="of poly")
    group.add_argument(
        "--loss",
        choices=LOSSES,
        metavar="LOSS",
        help="of UncertainSVC (default: expected_hinge), of a regression of UncertainSVR "
        f"(default: epsilon_insensitive); one of {', '.join(LOSSES)}",
    )
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
        ("--error-scale", "1", "multiply all errors of features by this"),
        ("--subspace", "all", "part of each example's variance to learn in, between 0 and 1"),
        ("--tol", "1e-6", "certified relative distance to the optimum to stop at"),
    ):
        group.add_argument(option, type=float, metavar="X", help=f"{text} (default: {default})")
    group.add_argument(
        "--solver", metavar="NAME", help="auto, lbfgs, interior_point, dual_coordinate, sgd"
    )
    group.add_argument("--max-iter", type=at_least(1), metavar="N", help="of the solver")
    group.add_argument("--class-weight", choices=["balanced"], help="give classes equal weight")
    group.add_argument(
        "--set",
        type=told(parse_setting),
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other parameter of the estimator; can be repeated",
    )

    group = sub.add_argument_group("the search and the judge")
    either = group.add_mutually_exclusive_group()
    either.add_argument("--C", type=c_value, default="cv", help='a number, or "cv" (the default)')
    either.add_argument(
        "--lambda", dest="lam", type=positive, metavar="L", help="instead: C = 1 / (L rows)"
    )
    group.add_argument(
        "--folds", type=folds, default=5, help="of cross-validation, 0 for none (default: 5)"
    )
    group.add_argument(
        "--calibrate", choices=METHODS, help="probabilities of the classes, by this form of curve"
    )
