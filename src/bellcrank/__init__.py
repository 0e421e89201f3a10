"""Bellcrank: compile a mechanism into verified real-time code, and see its cost before you run it.

    import bellcrank as bc

    arm = bc.read("arm.urdf")                       a Mechanism; or bc.zoo.puma600(), bc.Builder()
    arm.forward_dynamics(q, v, tau)                 any quantity, of one state or a batch; dir(arm) lists them
    bc.kernel(arm, "mass_matrix", dtype="float32")  the same with options of compilation
    bc.compile(function, inputs={"x": 3})           a function of your own; it may use bc.sin, bc.where, ...

    plant = bc.system(arm, actuators=..., control=...)
    run = bc.simulate(plant, seconds=10)            a Record; run.plot(), run.save("run.parquet")
    bc.gradient(plant, 1.0, final="tip.z")          of a scalar result of a run with respect to all its inputs
    env = bc.stepper(plant, batch=4096, every=0.02) action by action: env.reset(), env.step(u), env.reward
    bc.study(plant, {"boom.mass": bc.uniform(1, 2)}, runs=10_000, ...)    with Dask, into Parquet files
    bc.fit(plant, "measured.csv", free=["boom.mass"])       and bc.minimize, bc.identify
    bc.drive(plant)                                 in real time
    bc.export(plant, "plant", to="c")               for other programs
    A, B, C, D = bc.linearize(plant, at=...)        and bc.equilibrium(plant), the state of rest

    bc.register("method", "mine", function)         methods, joints, integrators, ... of your own

Modules are loaded on first use, so importing bellcrank costs next to nothing.
"""

from importlib import import_module as _import_module

from bellcrank import process_state as _process  # noqa: F401  # first: it notes the time, and prepares for forks

# Modules of the public names: {module: names}. __init__.pyi is generated from this for type checkers and editors.
_PUBLIC_NAMES = {
    "version": ("__version__",),
    # mechanisms
    "model": ("Mechanism",),
    "model.pinocchio_order": ("pinocchio_order",),
    "formats": ("Builder", "from_dh", "from_saha", "from_wong", "read"),
    "formats.collisions": ("collisions",),
    "parameters": ("parameter",),
    "structures.section": ("Material", "Profile", "Section"),
    "structures.matrices": ("flexible",),
    "structures.matrix_files": ("read_matrix",),
    "structures.mbdyn": ("read_fem", "write_fem"),
    "structures.sid": ("read_sid", "write_sid"),
    "structures.solid": ("solid",),
    "": ("zoo", "actuators", "forces", "control", "excavators", "identify", "papers"),
    # quantities and their compilation
    "dynamics": ("methods",),
    "build.kernels": ("kernel",),
    "build.function_compilation": ("compile",),
    "build.equations": ("equations",),
    "build.schedules": ("schedule",),
    "build.processor_assignment": ("ProcessorAssignment",),
    "emit.cpu.kernel": ("Kernel",),
    "graph": ("Graph",),
    "scheduling": ("Machine", "Schedule"),
    # runs
    "sim.linear.linearisation": ("Linear", "linearize"),
    "sim.linear.equilibrium": ("Equilibrium", "EquilibriumError", "equilibrium"),
    "sim.system.systems": ("System", "system"),
    "sim.run.simulator": ("Simulator", "simulate"),
    "sim.settings": ("Saving", "Solver"),
    "sim.program.events": ("Event",),
    "forces.latch": ("attach", "release"),
    "sim.input_histories": ("History", "history"),
    "sim.system.sampling": ("Sampled",),
    "sim.run.adjoint": ("Adjoint", "Gradient", "gradient"),
    "sim.stepper.stepper": ("Stepper",),
    "sim.stepper.stepper_factory": ("stepper",),
    "sim.realtime.realtime_drive": ("Drive", "drive"),
    "studies.study": ("Study", "study"),
    "studies.sampling_plans": ("log_uniform", "normal", "uniform"),
    "identify.output_error": ("fit",),
    "identify.parameter_search": ("Fit",),
    "identify.design_optimisation": ("Minimum", "minimize"),
    "exporting.export": ("export",),
    "build.compilation": ("Where",),
    "record": ("Record", "load_record"),
    # for traced functions: controls, forces, arguments of bc.compile
    "scalar": (
        *("acos", "asin", "atan2", "clip", "cos", "exp", "fabs", "floor", "log", "maximum", "minimum", "quantised"),
        *("sin", "sqrt", "tan", "tanh", "where"),
    ),
    "interpolation": ("interp",),
    "registration": ("register",),
    "errors": ("BellcrankError", "CompileError", "InputError", "ModelError", "ReadError", "TraceError"),
}
_MODULE_OF_NAME = {name: module for module, names in _PUBLIC_NAMES.items() for name in names}

__all__ = sorted(_MODULE_OF_NAME)


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f'module "bellcrank" has no attribute "{name}"', name=name, obj=_import_module(__name__))
    _import_module(f"{__name__}.plugins").load()  # extensions from installed packages
    if not _MODULE_OF_NAME[name]:
        return _import_module(f"{__name__}.{name}")
    value = globals()[name] = getattr(_import_module(f"{__name__}.{_MODULE_OF_NAME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
