"""Where trials run: here, in local processes, or wherever an executor takes them."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import joblib

from orbitgp.errors import InputError


def results_of(jobs: Sequence[Callable[[], Any]], executor: Any) -> Iterator[Any]:
    """What each job returns, in any order.

    An executor has `submit`, as those of concurrent.futures and of Dask have, or is a
    `joblib.Parallel`. Without one, local processes share the cores: joblib limits the threads of
    each, and sends functions that were defined in a notebook.
    """
    if executor is None:
        executor = joblib.Parallel(
            n_jobs=min(len(jobs), os.cpu_count() or 1), return_as="generator_unordered"
        )
    if hasattr(executor, "submit"):
        futures = [executor.submit(job) for job in jobs]
        yield from (future.result() for future in futures)
    elif isinstance(executor, joblib.Parallel):
        yield from executor(joblib.delayed(job)() for job in jobs)
    else:
        raise InputError(
            "executor must have a method submit, as concurrent.futures.ProcessPoolExecutor has, or "
            f"be a joblib.Parallel; got {executor!r:.80}"
        )
