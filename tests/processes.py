"""Python in a process of its own, which begins where torch has been imported already.

A fork of a process that has done nothing but import what torch, GPyTorch and scikit-learn bring,
and so knows nothing of orbitgp or of tests. It starts seconds earlier than a new interpreter, which
tests of imports and of signals from outside need instead.
"""

import multiprocessing
import os
import runpy
import select
import struct
import sys
import tempfile
from pathlib import Path
from subprocess import CompletedProcess


def processes():
    """Forks of a process that knows torch; new interpreters where a system cannot fork."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["torch", "gpytorch", "jaxtyping", "sklearn.base"])
    return forks


FORKS = processes()


def python(*arguments, cwd=None, env=None):
    """What `python -c CODE …`, `python -m MODULE …` or `python FILE …` prints and returns."""
    with tempfile.TemporaryDirectory() as folder:
        printed = [Path(folder) / "stdout", Path(folder) / "stderr"]
        process = _started(arguments, printed, cwd, env)
        process.join()
        texts = [path.read_text(encoding="utf-8") for path in printed]
    return CompletedProcess(arguments, process.exitcode, *texts)


def on_a_terminal(*arguments, columns, cwd=None, env=None):
    """The exit code, and all that is seen on a terminal of so many columns; not on Windows."""
    import fcntl
    import pty
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process, seen = _started(arguments, [os.ttyname(follower)] * 2, cwd, env), b""
    while True:
        if select.select([leader], [], [], 0.1)[0]:
            seen += os.read(leader, 4096)
        elif not process.is_alive():
            break
    for end in (leader, follower):
        os.close(end)
    return process.exitcode, seen.decode()


def _started(arguments, printed, cwd, env):
    command, place = [*map(str, arguments)], os.fspath(cwd or Path.cwd())
    begin = (command, place, {**os.environ} if env is None else env, printed)
    process = FORKS.Process(target=_begin, args=begin)
    process.start()
    return process


def _begin(command, cwd, env, printed):
    """Become the command."""
    for number, path in enumerate(printed, start=1):
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOCTTY", 0)
        os.dup2(os.open(path, flags), number)
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
