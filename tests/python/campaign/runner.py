"""Fit and judge one case, and many.

In:  a Case, or a kind and seeds.
Out: records of plain numbers and words, ready to be counted.
"""

import time
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from halosvm import UncertainSVC

from .generator import make
from .judge import judge

TOL = 1e-6


@dataclass
class Record:
    """What happened to one case."""

    kind: str
    seed: int
    n: int
    d: int
    seconds: float = 0.0
    judging: float = 0.0
    iterations: int = 0
    J: float = np.nan
    suboptimality: float = np.nan
    rounding: float = 0.0  # how far the rounding of covariances moves J, relative to it
    status: str = ""
    error: str = ""
    verdict: object = None

    @property
    def certified(self):
        """Whether the fit says that it reached the tolerance."""
        return self.suboptimality <= TOL

    @property
    def false(self):
        """Whether a point below the certified bound was found."""
        return self.verdict is not None and self.verdict.certificate == "false"

    @property
    def mismatched(self):
        """Whether objective_ is not J of the model."""
        return self.verdict is not None and not self.verdict.objective_true

    @property
    def unjudged(self):
        """Whether the judge proved nothing though J is above 1e-14, where its digits suffice."""
        return self.verdict is not None and self.verdict.certificate == "open" and self.J > 1e-14

    @property
    def uncertified(self):
        """Whether the fit ended above its tolerance without the excuse of rounding.

        The excuse: it says "stalled", and no model in doubles next to the optimum is that good, or
        the covariances are products that were rounded, which alone moves J by as much.
        """
        if self.error or self.certified:
            return False
        if "stall" in self.status and self.suboptimality <= TOL + self.rounding:
            return False
        representable = self.verdict is None or self.verdict.representable is not False
        return representable or "stall" not in self.status


def run(case, kind="", seed=0, **parameters):
    """Fit the case and judge the fit."""
    n, d = case.problem.side.shape
    record = Record(kind, seed, n, d)
    model = UncertainSVC(**{"n_threads": 1, **case.parameters, **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.process_time()
        try:
            model.fit(case.X, case.y, **case.fit)
        except Exception as error:  # whatever it is, the campaign goes on and lists it
            record.error = f"{type(error).__name__}: {error}"
            return record
        record.seconds = time.process_time() - start
    record.iterations, record.status = model.n_iter_, model.status_
    record.J, record.suboptimality = model.objective_, model.suboptimality_
    if case.problem.slack:
        value, rounding = case.problem.objective(model.coef_[0], model.intercept_[0])
        record.rounding = float(rounding / value)
    start = time.process_time()
    record.verdict = judge(
        case.problem,
        model.coef_[0],
        model.intercept_[0],
        model.objective_,
        model.suboptimality_,
        tol=TOL,
    )
    record.judging = time.process_time() - start
    return record


def run_seeds(kind, seeds, **parameters):
    """Return the records of the kind's cases of those seeds."""
    return [run(make(kind, seed), kind, seed, **parameters) for seed in seeds]
