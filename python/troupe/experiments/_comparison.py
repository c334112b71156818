"""Is one policy really faster than another?"""
from __future__ import annotations

import dataclasses
import math
import os
from typing import Any, List, Optional, Sequence, Union

import numpy as np

from troupe import _core
from troupe._notebook import Rows, Table
from troupe._policy import policy
from troupe.errors import InvalidArgument
from troupe.experiments._simulation import Placement, simulate
from troupe.experiments._workload import Cluster, TaskGraph, Workload


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What `compare` found. policies: names. makespans: seconds, [policies, samples]; the samples are each graph with
    each seed, graph after graph. rows: a table, a row for each policy. Notebooks show the table; str() is text."""

    policies: List[str]
    makespans: np.ndarray
    rows: Rows

    def to_pandas(self) -> Any:
        """Returns the table as a DataFrame. Raises ImportError without pandas."""
        import pandas

        return pandas.DataFrame(self.rows)

    def __str__(self) -> str:
        names = list(self.rows[0])
        cells = [names] + [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*cells)]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in cells)

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()


def compare(
    workloads: Union[Workload, Sequence[Workload]],
    cluster: Cluster,
    policies: Sequence[Placement],
    *,
    repetitions: int = 1,
    confidence: float = 0.95,
    seed: int = 1,
    **how: Any,
) -> Comparison:
    """Simulates each workload with each policy and says which is faster, and how sure that is.

    The first policy is the baseline. A sample is a workload with a seed; all policies have the same, so that samples
    are pairs. The table has, for each policy: makespan, the mean in seconds; ratio, the mean of its makespan by the
    baseline's, with low and high, Student's interval of that mean at `confidence`; faster, equal and slower, in how
    many samples (beyond a millionth); p_t and p_wilcoxon, the probabilities of the paired t-test of the ratios'
    logarithms and of Wilcoxon's signed-rank test of the same, after Holm's correction over the policies; NaN where
    there is nothing to test. repetitions: seeds of each workload, from `seed` on; of use with noise or random arrivals.
    how: as `simulate`.
    """
    listed = [workloads] if isinstance(workloads, (TaskGraph, str, os.PathLike)) else list(workloads)
    if not listed or not policies:
        raise InvalidArgument("at least one workload and one policy are needed")
    names = [p if isinstance(p, str) else policy(p).name for p in policies]
    makespans = np.array([[simulate(w, cluster, policy=p, seed=seed + r, **how).makespan
                           for w in listed for r in range(repetitions)] for p in policies])
    logs = np.log(np.maximum(makespans, 1e-12))
    tests = [[test(logs[0].tolist(), row.tolist()) for row in logs[1:]] for test in (_core.paired_t, _core.signed_rank)]
    p_t, p_wilcoxon = ([math.nan] + _holm(each) for each in tests)
    rows = Rows()
    for i, name in enumerate(names):
        ratio = np.exp(logs[i] - logs[0])
        mean, low, high = _core.mean_interval(ratio.tolist(), confidence)
        faster, slower = int((ratio < 1 - 1e-6).sum()), int((ratio > 1 + 1e-6).sum())
        rows.append(Table(policy=name, makespan=float(makespans[i].mean()), ratio=mean, low=low, high=high,
                          faster=faster, equal=len(ratio) - faster - slower, slower=slower, p_t=p_t[i],
                          p_wilcoxon=p_wilcoxon[i]))
    return Comparison(names, makespans, rows)


def _holm(probabilities: Sequence[Optional[float]]) -> List[float]:
    """Corrects those probabilities that there are."""
    adjusted = iter(_core.holm_adjusted([p for p in probabilities if p is not None]))
    return [math.nan if p is None else next(adjusted) for p in probabilities]
