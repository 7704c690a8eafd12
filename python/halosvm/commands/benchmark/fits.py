"""Time to a given true gap: uncertain examples, and certain ones (a plain linear SVM).

On uncertain examples the rival on the same objective is SciPy's L-BFGS-B on `halosvm.reference`;
LinearSVC and SGDClassifier ignore the errors. On certain examples each rival runs at its own
settings, and halosvm at the loosest tolerance that reaches its objective.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import rivals
from . import settings as table
from .data import make_examples
from .report import Section
from .timing import announce, available_threads, interleave

if TYPE_CHECKING:
    from collections.abc import Callable

    from .data import Examples
    from .settings import Settings

    Contestants = dict[str, Callable[[], Any] | None]

SMALLEST = min(table.GAPS)
LADDER = {f"fit, tol {tol:g}": tol for tol in table.TOLERANCES}
LAST = list(LADDER)[-1]

UNCERTAIN_NOTES = """
* gap: the true (J - J*)/J* of the expected hinge objective. solver: when the objective is first
  that low, on data in memory, for both. fit: all of UncertainSVC.fit, from arrays until tol is
  certified, against that first moment of the rival. passes: over all examples, after one that
  checks them and one for their moments.
* L-BFGS-B: SciPy's, on halosvm.reference in NumPy, with one thread of BLAS and with all; the
  faster is shown.
* LinearSVC and SGDClassifier see the means only and solve another problem: their time at default
  settings, with the one thread they have.
"""
CERTAIN_NOTES = """
* gap: (J - J*)/J* of the hinge objective at the rival's w with the best intercept for it.
  halosvm: all of UncertainSVC.fit, from arrays to the certificate, at the loosest tol whose
  result is no worse than the rival's.
* LinearSVC, LIBLINEAR and SGDClassifier have one thread. LIBLINEAR's time is without the conversion
  to its format, which is a part of LinearSVC's. Both regularise the intercept; they are not charged
  for that. The target is for the setting of each that gets lowest.
* cyanure has no hinge loss: the squared hinge is another problem, on all threads to its default
  tol; halosvm's time beside it is that of its smallest tol.
"""


# -- uncertain examples --------------------------------------------------------------------------
def measure_uncertain(settings: Settings) -> Section:
    """Race to the gaps of `settings.GAPS` for each kind of features and each lam, and cvxpy."""
    n, d = settings.shape
    title = f"Uncertain examples: {n:,} x {d}, diagonal float64"
    section = Section("uncertain", title, "s", "times faster", UNCERTAIN_NOTES)
    for features in settings.features:
        data = make_examples(settings.shape, features, seed=settings.seed)
        for lam in settings.lams:
            _race_to_gaps(section, settings, data, f"{features}, lam {lam:g}", lam)
    _race_tiny(section, settings)
    return section


def _race_to_gaps(
    section: Section, settings: Settings, data: Examples, case: str, lam: float
) -> None:
    announce(f"uncertain: {case}")
    X = data.gaussians()
    exact = rivals.halosvm_best(data, lam)
    patient = rivals.lbfgsb_trace(X, data.y, lam, enough=0.0, n_threads=1)()
    optimum = min(float(exact.objective_), float(patient.values.min()))
    fits = {gap: f"fit, tol {gap:g}" for gap in table.GAPS}
    blas = {threads: f"L-BFGS-B, BLAS {threads}" for threads in (1, available_threads())}
    contestants: dict[str, Any] = {
        "solver": rivals.halosvm_trace(X, data.codes, lam, SMALLEST),
        **{name: rivals.halosvm_fit(data, lam, gap) for gap, name in fits.items()},
        "one thread": rivals.halosvm_fit(data, lam, SMALLEST, n_threads=1),
        "LinearSVC": rivals.linear_svc(data, lam, table.LINEAR_SVC["default"]),
        "SGDClassifier": rivals.sgd_classifier(data, lam, table.SGD["default"]),
        **{
            name: rivals.lbfgsb_trace(X, data.y, lam, optimum * (1.0 + SMALLEST), n_threads=threads)
            for threads, name in blas.items()
        },
    }
    runs = interleave(contestants, settings.repeats, settings.slow)

    lbfgsb = min(blas.values(), key=lambda name: runs[name].median)
    for gap, fit in fits.items():
        ours, theirs = (
            [trace.time_to(optimum * (1.0 + gap)) for trace in runs[name].results]
            for name in ("solver", lbfgsb)
        )
        target = f">= {table.LBFGSB_RATIO:g}" if gap == SMALLEST else ""
        section.add(f"{case}: solver, gap {gap:g}", ours, lbfgsb, theirs, target=target)
        models = runs[fit].results
        true = max(model.objective_ for model in models) / optimum - 1.0
        note = f"{gap_note(true)}, {models[0].n_iter_} passes{rivals.doubt(models)}"
        section.add(
            f"{case}: {fit}", runs[fit].seconds, lbfgsb, theirs, note=note, target=target
        )  # fmt: skip
    tightest = fits[SMALLEST]
    seconds = runs[tightest].seconds
    for name, target in (("LinearSVC", f">= {table.LINEAR_SVC_RATIO:g}"), ("SGDClassifier", "")):
        gap = rivals.best_value(X, data.codes, runs[name].results[0], lam) / optimum - 1.0
        note = f"another problem: {gap_note(gap)}"
        section.add(
            f"{case}: {tightest}", seconds, name, runs[name].seconds, note=note, target=target
        )
    alone = runs["one thread"].seconds
    threads = f"{available_threads()} threads"
    section.add(f"{case}: {tightest}, {threads}", seconds, "halosvm, 1 thread", alone)
    traces = {"halosvm": runs["solver"].results[0], "L-BFGS-B": runs[lbfgsb].results[0]}
    section.details[case] = {
        "optimum": optimum,
        "optimum, halosvm": exact.objective_,
        "optimum, halosvm, certified suboptimality": exact.suboptimality_,
        "optimum, best of L-BFGS-B": patient.values.min(),
        "seconds": {name: run.seconds for name, run in runs.items()},
        "iterations": {fit: runs[fit].results[0].n_iter_ for fit in fits.values()},
        "traces": {
            name: {"seconds": trace.seconds, "gaps": trace.values / optimum - 1.0}
            for name, trace in traces.items()
        },
    }


def _race_tiny(section: Section, settings: Settings) -> None:
    """Race against a general conic solver, for the few sizes that it can do."""
    (n, d), lam = settings.tiny_shape, settings.lams[0]
    data = make_examples((n, d), settings.features[0], seed=settings.seed)
    conic = rivals.cvxpy_fit(data, lam)
    if conic is None:
        return
    fit = rivals.halosvm_fit(data, lam, SMALLEST)
    runs = interleave({"halosvm": fit, "cvxpy": conic}, settings.repeats)
    optimum = float(rivals.halosvm_best(data, lam).objective_)
    value = rivals.best_value(data.gaussians(), data.codes, runs["cvxpy"].results[0], lam)
    section.add(
        f"{n} x {d}, lam {lam:g}: fit, tol {SMALLEST:g}",
        runs["halosvm"].seconds,
        "cvxpy, Clarabel",
        runs["cvxpy"].seconds,
        note=f"{table.CVXPY_TANGENTS} tangent planes: {gap_note(value / optimum - 1.0)}",
    )


def gap_note(gap: float) -> str:
    """Say how far an objective is above the optimum."""
    return f"true gap {max(float(gap), 0.0):.1e}"


# -- certain examples ----------------------------------------------------------------------------
def measure_certain(settings: Settings) -> Section:
    """Run the rivals for each kind of features and each lam, on few features, and cvxpy."""
    n, d = settings.shape
    title = f"Certain examples, a plain linear SVM: {n:,} x {d}, float64"
    section = Section("certain", title, "s", "times faster", CERTAIN_NOTES)
    target = f">= {table.CERTAIN_RATIO:g}"
    for features in settings.features:
        data = make_examples(settings.shape, features, seed=settings.seed, uncertain=False)
        for lam in settings.lams:
            theirs = _plain_rivals(data, lam)
            _race_to_rivals(
                section, settings, data, f"{features}, lam {lam:g}", lam, theirs, target
            )

    (n, d), lam = settings.narrow_shape, settings.lams[0]
    narrow = make_examples((n, d), settings.features[0], seed=settings.seed, uncertain=False)
    theirs = _plain_rivals(narrow, lam)
    _race_to_rivals(section, settings, narrow, f"{n:,} x {d}, lam {lam:g}", lam, theirs)
    n, d = settings.tiny_shape
    tiny = make_examples((n, d), settings.features[0], seed=settings.seed, uncertain=False)
    theirs = {"cvxpy, Clarabel": rivals.cvxpy_fit(tiny, lam)}
    _race_to_rivals(section, settings, tiny, f"{n:,} x {d}, lam {lam:g}", lam, theirs)
    return section


def _plain_rivals(data: Examples, lam: float) -> Contestants:
    found: Contestants = {}
    for name, options in table.LINEAR_SVC.items():
        found[f"LinearSVC, {name}"] = rivals.linear_svc(data, lam, options)
    for name, line in table.LIBLINEAR.items():
        found[f"LIBLINEAR, {name}"] = rivals.liblinear(data, lam, line)
    for name, options in table.SGD.items():
        found[f"SGDClassifier, {name}"] = rivals.sgd_classifier(data, lam, options)
    found["cyanure, squared hinge"] = rivals.cyanure(data, lam)
    return found


def _race_to_rivals(
    section: Section,
    settings: Settings,
    data: Examples,
    case: str,
    lam: float,
    contestants: Contestants,
    target: str = "",
) -> None:
    """Time the contestants that are installed, and put each beside the tolerance it matches.

    The target is that of the setting with which a library of coordinate descent gets lowest.
    """
    theirs = {name: solve for name, solve in contestants.items() if solve is not None}
    if not theirs:
        return
    announce(f"certain: {case}")
    ours = {step: rivals.halosvm_fit(data, lam, tol) for step, tol in LADDER.items()}
    runs = interleave({**ours, **theirs}, settings.repeats, settings.slow)

    best = rivals.halosvm_best(data, lam)
    X = data.gaussians()
    reached = {step: max(fit.objective_ for fit in runs[step].results) for step in LADDER}
    values = {
        name: min(rivals.best_value(X, data.codes, w, lam) for w in runs[name].results)
        for name in theirs
    }
    optimum = min([best.objective_, *reached.values(), *values.values()])
    gaps = {name: float(value / optimum - 1.0) for name, value in (reached | values).items()}
    lowest = {
        min(names, key=lambda name: (gaps[name], runs[name].median))
        for library in ("LinearSVC", "LIBLINEAR")
        if (names := [name for name in theirs if name.startswith(library)])
    }
    for name in theirs:
        step = matching_step(gaps, name)
        note = f"gap {gaps[name]:.1e}{', timed once' if len(runs[name].seconds) == 1 else ''}"
        if "squared" in name:
            note = f"another problem: {note}"
        elif gaps[step] > gaps[name]:
            note += f", halosvm {gaps[step]:.1e}"
        note += rivals.doubt(runs[step].results)
        section.add(
            f"{case}: {step}", runs[step].seconds, name, runs[name].seconds,
            note=note, target=target if name in lowest else "",
        )  # fmt: skip
    section.details[case] = {
        "optimum": optimum,
        "optimum, halosvm": best.objective_,
        "optimum, halosvm, certified suboptimality": best.suboptimality_,
        "seconds": {name: run.seconds for name, run in runs.items()},
        "gaps": gaps,
        "iterations": {step: runs[step].results[0].n_iter_ for step in LADDER},
    }


def matching_step(gaps: dict[str, float], name: str) -> str:
    """Return the loosest step of `LADDER` that has a gap no larger than the rival's.

    It is the last one if none has such a gap, and for a rival with another problem.
    """
    good = [step for step in LADDER if gaps[step] <= gaps[name]]
    return good[0] if good and "squared" not in name else LAST
