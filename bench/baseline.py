"""The baseline of the comparison: Pinocchio, as the PyPI package `pin` ships it.

    from bench.baseline import flavours_ns
    flavours_ns("talos", "aba", floating=True, core=1)   # also a path of a URDF, "chain:256", "tree:255"

Pinocchio is a template library, so its speed depends on how it is compiled. The same C++ loop is built in several
flavours, the usual one first; `python bench/baseline.py ROBOT...` prints them all.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
LOOP = "pinocchio_loop"  # the algorithms over random states
RK4 = "pinocchio_rk4"  # aba in the stages of a run
LOOPS = "pinocchio_loops"  # constraintDynamics in the stages of a run
ALGORITHMS = ("aba", "computeABADerivatives", "crba", "rnea")
LOCKED = {"panda": ("panda_finger_joint1", "panda_finger_joint2")}  # the arm alone: seven joints on both sides

# All use Pinocchio's headers only: its precompiled library is SSE2 code and was never the fastest when measured.
# Eigen's own vectorisation of 3- and 6-vectors matters more: aba and rnea were a third slower with it, crba was not.
FLAVOURS = {
    "vector": ["-O3", "-march=native", "-DNDEBUG"],
    "scalar": ["-O3", "-march=native", "-DNDEBUG", "-DEIGEN_DONT_VECTORIZE"],
    "scalar-O2": ["-O2", "-march=native", "-DNDEBUG", "-DEIGEN_DONT_VECTORIZE"],
}
# As in Pinocchio's own exported build options: its joint variant has more members than Boost's defaults allow.
DEFINES = [
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
]


@dataclass(frozen=True)
class Timing:
    ns_min: float
    ns_median: float
    nv: int
    how: str


@functools.cache
def prefix() -> Path | None:
    """Return the folder with the include, lib and share of the installed `pin`."""
    try:
        import pinocchio
    except ImportError:
        return None
    parents = Path(pinocchio.__file__).resolve().parents
    return next((p for p in parents if (p / "include" / "pinocchio").is_dir()), None)


@functools.cache
def eigen() -> Path | None:
    """Return the folder of Eigen's headers, which the package cmeel-eigen installs beside `pin`."""
    found = [os.environ.get("EIGEN3_INCLUDE_DIR", ""), f"{prefix()}/include/eigen3"]
    if shutil.which("pkg-config"):
        said = subprocess.run(["pkg-config", "--variable=includedir", "eigen3"], capture_output=True, text=True)
        found += [said.stdout.strip(), said.stdout.strip() + "/eigen3"]
    return next((Path(f) for f in found if f and (Path(f) / "Eigen" / "Core").is_file()), None)


def missing() -> str:
    """Return what is missing to build the C++ loop on this machine; an empty text if nothing is."""
    if prefix() is None:
        return "pin"
    if shutil.which("g++") is None:
        return "g++"
    return "" if eigen() else "Eigen headers"


def available() -> bool:
    return not missing()


def robot_path(name: str) -> Path:
    """Return the URDF of a robot of example-robot-data. Talos is the one with 32 joints (no finger joints)."""
    files = {
        "ur5": "ur5_robot.urdf",
        "panda": "panda.urdf",
        "talos": "talos_reduced.urdf",
        "hyq": "hyq_no_sensors.urdf",
        "a1": "a1.urdf",
    }
    robots = Path(str(prefix())) / "share" / "example-robot-data" / "robots"
    found = sorted(robots.rglob(files[name]))
    if not found:
        raise FileNotFoundError(f"{files[name]}: is example-robot-data installed?")
    return found[0]


def build(program: str = LOOP) -> dict[str, Path]:
    """Return the program in each flavour, compiled only if the source, flags, compiler or CPU have changed."""
    where, source = prefix(), HERE / f"{program}.cpp"
    macros = subprocess.run(
        ["g++", "-march=native", "-dM", "-E", "-x", "c++", os.devnull], capture_output=True, check=True
    ).stdout  # prints the compiler's version and every instruction set that it may use here
    shared = ["-std=c++17", "-w", *DEFINES, "-isystem", f"{where}/include", "-isystem", str(eigen()), str(source)]
    shared += [f"-L{where}/lib", f"-Wl,-rpath,{where}/lib", "-lboost_serialization"]
    version = (Path(str(where)) / "include" / "pinocchio" / "config.hpp").read_bytes()

    def one(flavour: str) -> Path:
        command = ["g++", *FLAVOURS[flavour], *shared]
        key = hashlib.sha256(b"\0".join([source.read_bytes(), macros, version, " ".join(command).encode()]))
        target = HERE / "build" / f"{program}-{flavour}-{key.hexdigest()[:16]}"
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            begin = time.perf_counter()
            subprocess.run([*command, "-o", f"{target}.part"], check=True)
            os.replace(f"{target}.part", target)  # an interrupted build leaves no file that looks complete
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
            took = time.perf_counter() - begin
            print(f"compiled {program} ({flavour}) in {took:.0f} s, at most {peak:.1f} GiB", file=sys.stderr)
        return target

    with ThreadPoolExecutor(2) as pool:  # no more at once, because each compiler takes over 4 GiB
        return dict(zip(FLAVOURS, pool.map(one, FLAVOURS)))


def made(robot: Path | str) -> tuple[str, int] | None:
    """Return ("chain", 256) for "chain:256", ("tree", 255) for "tree:255", nothing for a URDF."""
    kind, _, count = str(robot).partition(":")
    return (kind, int(count)) if kind in ("chain", "tree") and count.isdigit() else None


def model_of(robot: Path | str, floating: bool = False) -> Any:
    """Return Pinocchio's model of a known robot, a URDF, or the same chains and trees as in the C++ loop."""
    import numpy as np
    import pinocchio as pin

    mechanism = made(robot)
    if mechanism is None:
        path = robot_path(str(robot)) if str(robot) in ("ur5", "panda", "talos", "hyq") else Path(robot)
        root = [pin.JointModelFreeFlyer()] if floating else []
        model = pin.buildModelFromUrdf(str(path), *root)
        locked = [model.getJointId(j) for j in LOCKED.get(str(robot), ())]
        return pin.buildReducedModel(model, locked, pin.neutral(model)) if locked else model
    if floating:
        raise ValueError("chains and trees have a fixed base")
    kind, count = mechanism
    model = pin.Model()
    inertia = pin.Inertia(1.0, np.array([0.01, 0.02, 0.1]), np.diag([0.02, 0.02, 0.01]))
    todo = [(0, 0)]  # a stack for depth first, as Pinocchio needs the joints of each subtree to be consecutive
    while todo:
        i, parent = todo.pop()
        axis = pin.JointModelRX() if i % 2 else pin.JointModelRZ()
        joint = model.addJoint(parent, axis, pin.SE3(np.eye(3), np.array([0.05, 0.0, 0.2])), f"joint{i}")
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
        children = [i + 1] if kind == "chain" else [2 * i + 2, 2 * i + 1]
        todo += [(child, joint) for child in children if child < count]
    return model


def flavours_ns(
    robot: Path | str,
    algorithm: str,
    floating: bool = False,
    states: int = 1024,
    core: int | None = None,
    seconds: float = 0.2,
) -> list[Timing]:
    """Time the C++ loop in every flavour, each in its faster joint convention."""
    programs = build()
    mechanism = made(robot)
    if mechanism and floating:
        raise ValueError("chains and trees have a fixed base")
    timings = []
    with tempfile.TemporaryDirectory() as folder:
        source = ["--model", f"{folder}/model.txt"]
        if mechanism:
            source = [f"--{mechanism[0]}", str(mechanism[1])]
        else:
            model_of(robot, floating).saveToText(source[1])
        for flavour, program in programs.items():
            pinned = [] if core is None else ["--core", str(core)]
            options = ["--states", str(states), "--seconds", str(seconds), *source, algorithm]
            said = subprocess.run([program, *pinned, *options], stdout=subprocess.PIPE, text=True, check=True).stdout
            job = json.loads(said)
            flags = " ".join(FLAVOURS[flavour])
            how = f"Pinocchio {job['pinocchio']}, C++ loop, headers only, g++ {flags}, {job['convention']}"
            timings.append(Timing(job["ns_min"], job["ns_median"], job["nv"], how))
    return timings


def pinocchio_python_ns(
    robot: Path | str,
    algorithm: str,
    floating: bool = False,
    states: int = 1024,
    core: int | None = None,
    seconds: float = 0.2,
) -> Timing:
    """Return ns per call of the Python bindings, one state per call, in Pinocchio's default convention."""
    import numpy as np
    import pinocchio as pin

    if algorithm not in ALGORITHMS:
        raise ValueError(f"no such algorithm: {algorithm}")
    model = model_of(robot, floating)
    data = model.createData()
    limits = np.array([model.lowerPositionLimit, model.upperPositionLimit])
    low, high = np.where(np.abs(limits) < 1e3, limits, np.copysign(np.pi, limits))  # as in the C++ loop
    rng = np.random.default_rng(0)
    inputs = [(pin.randomConfiguration(model, low, high), *rng.uniform(-1, 1, (2, model.nv))) for _ in range(states)]
    if algorithm == "crba":
        inputs = [(q,) for q, _, _ in inputs]
    call: Callable[..., Any] = getattr(pin, algorithm)
    cores = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        ns: list[float] = []
        begin = time.perf_counter()
        while len(ns) < 10 or time.perf_counter() - begin < seconds:
            t0 = time.perf_counter_ns()
            for arguments in inputs:
                call(model, data, *arguments)
            ns.append((time.perf_counter_ns() - t0) / states)
    finally:
        os.sched_setaffinity(0, cores)
    ns = ns[1:]  # the first pass warms the caches
    because = f" (no C++ loop: {missing()} not found)" if missing() else ""
    return Timing(min(ns), median(ns), model.nv, f"Pinocchio {pin.__version__}, called from Python{because}")


def main(robots: list[str]) -> None:
    """Print a table of every flavour.

    A robot is ur5, panda, talos, a URDF, chain:N or tree:N; a + before it adds a floating base.
    """
    core = max(os.sched_getaffinity(0))
    for robot in robots or ["ur5", "panda", "talos", "+talos", "chain:256", "tree:255"]:
        name, floating = robot.removeprefix("+"), robot.startswith("+")
        for algorithm in ALGORITHMS:
            timings = flavours_ns(name, algorithm, floating, core=core) if available() else []
            timings.append(pinocchio_python_ns(name, algorithm, floating, core=core))
            for t in timings:
                print(f"{robot:10} {algorithm:5} nv {t.nv:3} {t.ns_min:10.0f} {t.ns_median:10.0f} ns  {t.how}")


if __name__ == "__main__":
    main(sys.argv[1:])
