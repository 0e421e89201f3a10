"""Commands doctor, costs and cache: checks of this computer, and the costs and kernels that are stored on it."""

from __future__ import annotations

import ctypes.util
import importlib
import importlib.metadata
import importlib.util
import math
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

import bellcrank as bc
from bellcrank import plugins
from bellcrank.cli import app, options, screen
from bellcrank.cli.screen import TableColumn, numbers, texts

GOOD, POOR, BAD = "ok", "-", "BROKEN"
MEGABYTE = 1e6
COST_DESCRIPTIONS = {
    "arithmetic": "mul, add, sub, comparison and selection",
    "roots": "div, sqrt",
    "angles": "sine and cosine of one angle",
    "calls": "function of the C library: exp, tan, ...",
    "recalls": "use of a spilled value",
    "reads": "number read",
    "writes": "number written",
    "starts": "state",
    "extremes": "minimum, maximum",
}
FILE_KINDS = {
    ".o": "compiled kernels",
    ".cubin": "GPU kernels",
    ".json": "requests and measured costs",
    "": "incomplete files",
}


@dataclass(frozen=True)
class Finding:
    """Result of one check: its subject, its state, the facts and a remedy."""

    what: str
    state: str
    here: str
    remedy: str = ""


def _finding(what: str, good: object, here: str, remedy: str) -> Finding:
    """Return the result of a check that is `good`, or needs a `remedy`."""
    return Finding(what, GOOD, here) if good else Finding(what, POOR, here, remedy)


@app.command()
def doctor(json: options.JsonOpt = False) -> None:
    """Check this computer, and name remedies for what is missing.

    The exit code is 1 if a kernel does not compile or gives a wrong result; anything else that is missing costs only
    time or comfort.
    """
    findings: list[Finding] = []
    with screen.progress("checking") as say:
        for check in CHECKS:
            say(f"checking {check.__name__.strip('_')}")
            findings += check()
    if json:
        screen.data([asdict(finding) for finding in findings])
    else:
        head = [TableColumn(""), TableColumn("what"), *texts("here", "what to do")]
        screen.table(head, [(f.state, f.what, f.here, f.remedy) for f in findings])
    if any(f.state == BAD for f in findings):
        raise typer.Exit(1)


def _versions() -> Iterator[Finding]:
    free = "" if getattr(sys, "_is_gil_enabled", lambda: True)() else ", free-threaded"
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield Finding("bellcrank", GOOD, f"{bc.__version__}, in {Path(bc.__file__).parent}")
    yield Finding("python", GOOD, f"{platform.python_version()}{free}, {sys.executable}")
    tested = platform.system() == "Linux" and platform.machine() == "x86_64"
    yield _finding("system", tested, system, "not tested; see docs/platforms.md")


def _processor() -> Iterator[Finding]:
    from bellcrank.cli.timing import cores
    from bellcrank.emit.llvm.host import host

    h = host()
    lanes = f"{h.cpu}: {h.lanes('float64')} lanes of float64, {h.lanes('float32')} of float32; LLVM {h.llvm}"
    forced = os.environ.get("BELLCRANK_CPU")
    yield _finding("lanes", not forced, lanes, "unset BELLCRANK_CPU to use all of it")
    usable, available = cores(), f"{cores()} of {os.cpu_count() or 1} may be used"
    yield _finding("cores", usable > 1, available, "threads= and machine= need more than one")


def _kernels() -> Iterator[Finding]:
    """Compile a kernel that cannot be in the cache, and check its result."""
    length = 1.0 + time.time() % 1.0
    b = bc.Builder("doctor")
    b.body("bob", mass=1.0, com=(0, 0, -length))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0))
    began = time.perf_counter()
    try:
        kernel = bc.kernel(b.build(), "forward_dynamics", method="crba")
        got = float(kernel([0.5], [0.0], [0.0])[0])
    except Exception as error:
        yield Finding("a kernel", BAD, f"{type(error).__name__}: {error}", "please report it, with this table")
        return
    wanted = -9.81 / length * math.sin(0.5)
    right = abs(got - wanted) < 1e-12
    took = f"compiled and called in {time.perf_counter() - began:.2f} s"
    remedy = "" if right else f"gives {got}, expected {wanted}: please report it"
    yield Finding("a kernel", GOOD if right else BAD, took, remedy)


def _cache() -> Iterator[Finding]:
    from bellcrank.emit import cache as store
    from bellcrank.emit.cache import distrust_reason

    folder, why = store.location()
    without = "every process compiles its kernels; set BELLCRANK_CACHE to"
    if folder is None:
        yield Finding("cache", POOR, why, f"{without} a folder of your own")
        return
    why = distrust_reason(folder)
    size = sum(f.size for f in store.cache_files()) / MEGABYTE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    problem = why or ("" if writable else f"{folder} cannot be written")
    yield _finding("cache", not problem, problem or f"{folder}, {size:.1f} MB", f"{without} another folder")


def _real_time() -> Iterator[Finding]:
    if not hasattr(os, "sched_setscheduler"):
        remedy = "drives run at normal priority, and report it"
        yield Finding("real time", POOR, "this system has no SCHED_FIFO", remedy)
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, *before)
        yield Finding("real time", GOOD, "SCHED_FIFO is allowed")
    except OSError as error:
        how = "'@realtime - rtprio 99' and '- memlock unlimited' in /etc/security/limits.conf, or CAP_SYS_NICE"
        yield Finding("real time", POOR, f"no SCHED_FIFO: {error.strerror}", how)


def _page() -> Iterator[Finding]:
    from bellcrank.cockpit import __file__ as home

    is_bundled = (Path(home).with_name("static") / "cockpit.js").is_file()
    state = "bundled" if is_bundled else "not bundled"
    yield _finding("page of drive", is_bundled, state, "in a clone: make page; a wheel has it")


def _gpu() -> Iterator[Finding]:
    driver = ctypes.util.find_library("cuda") or (sys.platform == "win32" and ctypes.util.find_library("nvcuda"))
    if not driver:
        yield Finding("GPU", POOR, "no NVIDIA driver", "target='cuda' computes on the CPU instead")
        return
    try:
        cupy = importlib.import_module("cupy")
        count = cupy.cuda.runtime.getDeviceCount()
        names = [cupy.cuda.runtime.getDeviceProperties(i)["name"].decode() for i in range(count)]
        yield Finding("GPU", GOOD, ", ".join(names))
    except Exception as error:
        yield Finding("GPU", POOR, f"{type(error).__name__}: {error}", 'pip install "bellcrank[cuda]"')


def _compiler() -> Iterator[Finding]:
    compiler = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    if compiler is None and importlib.util.find_spec("ziglang"):
        compiler = "ziglang"
    how = 'needed only for FMUs and CasADi libraries: pip install "bellcrank[fmu]"'
    yield _finding("C compiler", compiler, compiler or "none", how)


def _packages() -> Iterator[Finding]:
    for package, things in plugins.packages.items():
        yield Finding(f"package {package}", GOOD, f"adds {', '.join(things)}")


def _extras() -> Iterator[Finding]:
    """Check the optional dependencies that the installed package declares."""
    try:
        wanted = importlib.metadata.requires("bellcrank") or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding("extras", POOR, "bellcrank is not installed as a package", "pip install -e .")
        return
    groups: dict[str, list[str]] = {}
    for line in wanted:
        match = re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]", line)
        if match and match[2] not in ("dev", "docs"):
            groups.setdefault(match[2], []).append(match[1])
    for group, packages in groups.items():
        missing = [name for name in packages if not _installed(name)]
        state = f"without {', '.join(missing)}" if missing else ", ".join(packages)
        yield _finding(f"extra {group}", not missing, state, f'pip install "bellcrank[{group}]"')


def _installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _versions, _processor, _kernels, _cache, _real_time, _page, _gpu, _compiler, _packages, _extras,
)  # fmt: skip


@app.command()
def costs(
    again: Annotated[bool, typer.Option("--again", help="Measure now, and store the result.")] = False,
    dtype: options.DtypeOpt = "float64",
    json: options.JsonOpt = False,
) -> None:
    """Print the cost of operations on this computer.

    These weights predict times and choose methods: nanoseconds for one state of a batch on one core. They are measured
    when they are first needed and stored in the cache folder.
    """
    from bellcrank.emit.cpu import costs as model
    from bellcrank.emit.llvm.host import host

    with screen.progress("measuring what operations cost"):
        measured_costs = model.measure_costs(dtype) if again else model.costs(dtype)
    if json:
        screen.data({"cpu": host().cpu, "dtype": dtype, "nanoseconds": asdict(measured_costs)})
        return
    screen.heading(f"{host().cpu}, {host().lanes(dtype)} lanes of {dtype}")
    rows = [(name, f"{x:.3f}", COST_DESCRIPTIONS[name]) for name, x in asdict(measured_costs).items()]
    screen.table([TableColumn("part"), *numbers("ns"), *texts("for each")], rows)


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all files.")] = False,
    json: options.JsonOpt = False,
) -> None:
    """Print the contents of the cache, and whether it is trusted.

    A file is not loaded if other users may write it or its folder. $BELLCRANK_CACHE names another folder,
    $BELLCRANK_CACHE_MB limits its size, $BELLCRANK_CACHE_DAYS the age of files that are not used.
    """
    from bellcrank.emit import cache as store
    from bellcrank.emit.cache import distrust_reason

    removed = store.clear() if clear else 0
    cached_files, (max_bytes, max_age_seconds) = list(store.cache_files()), store.limits()
    folder, why = store.location()
    why = distrust_reason(folder) if folder is not None else why
    now = time.time()
    if json:
        used = {"oldest_days": max(now - f.last_used for f in cached_files) / store.DAY_SECONDS} if cached_files else {}
        about: dict[str, object] = {"folder": None if folder is None else str(folder), "trusted": not why, "why": why}
        about |= {"files": len(cached_files), "bytes": sum(f.size for f in cached_files), "removed": removed}
        screen.data(about | {"most_bytes": max_bytes, "most_days": max_age_seconds / store.DAY_SECONDS} | used)
        return
    rows = []
    for suffix, what in FILE_KINDS.items():
        files_of_kind = [f for f in cached_files if os.path.splitext(f.path)[1] == suffix]
        if files_of_kind:
            age = max(now - f.last_used for f in files_of_kind) / store.DAY_SECONDS
            size = sum(f.size for f in files_of_kind)
            rows.append((what, str(len(files_of_kind)), f"{size / 1e6:.1f}", f"{age:.1f}"))
    if folder is None:
        screen.line(f"no cache: {why}", style="bold")
        return
    screen.line(str(folder), style="bold")
    screen.line(f"not trusted, and not used: {why}" if why else "trusted: no other user may write it")
    screen.line()
    if clear:
        screen.line(f"removed {removed} file{'s' * (removed != 1)}")
    if rows:
        screen.table([*texts("what"), *numbers("files", "MB", "oldest use, days")], rows)
    elif not clear:
        screen.line("the cache is empty")
    screen.line()
    days = max_age_seconds / store.DAY_SECONDS
    screen.line(f"limits: {max_bytes / 1e6:g} MB, and files used in the last {days:g} days", style="dim")
