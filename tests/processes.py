"""Python in a process of its own, which begins where torch has been imported already.

A fork of a process that has done nothing but import what torch, GPyTorch and scikit-learn bring,
and so knows nothing of orbitgp or of tests. It starts seconds earlier than a new interpreter, which
tests of imports, of terminals and of signals from outside need instead.
"""

import multiprocessing
import os
import runpy
import sys
import tempfile
from pathlib import Path
from subprocess import CompletedProcess

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "gpytorch", "jaxtyping", "sklearn.base"])


def python(*arguments, cwd=None, env=None):
    """What `python -c CODE …`, `python -m MODULE …` or `python FILE …` prints and returns."""
    command = [*map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        printed = [Path(folder) / "stdout", Path(folder) / "stderr"]
        place = os.fspath(cwd or Path.cwd())
        begin = (command, place, env or {**os.environ}, printed)
        process = FORKS.Process(target=_begin, args=begin)
        process.start()
        process.join()
        texts = [path.read_text() for path in printed]
    return CompletedProcess(command, process.exitcode, *texts)


def _begin(command, cwd, env, printed):
    """Become the command."""
    for number, path in enumerate(printed, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    kind, *rest = command
    match kind:
        case "-c":
            code, *after = rest
            sys.argv, sys.path[:0] = ["-c", *after], [""]
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        case "-m":
            module, *after = rest
            sys.argv, sys.path[:0] = [module, *after], [cwd]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case _:
            sys.argv, sys.path[:0] = command, [str(Path(kind).parent)]
            runpy.run_path(kind, run_name="__main__")
