"""Graphs of a System: its rate f, the Jacobian of f, its outputs, and the Problem that an integrator solves.

f is traced once and called by every stage of every step, so its code exists once. What depends on closed loops has the
default of a tree here, which has none; looped_dynamics.py and loop_closure.py have the rest. Other modules do not
distinguish the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from bellcrank.build import graphs
from bellcrank.dynamics import METHODS, Method, kinematics
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.dynamics.ltl_factorisation import Rows
from bellcrank.errors import InputError
from bellcrank.graph import Graph, Layout, Node, Ports, trace
from bellcrank.integrate.implicit import LUFactors, WoodburySolver, implicit_solver
from bellcrank.integrate.problem import LowRankMatrix, MatrixFreeJacobian, Problem, State, Step, identity, select
from bellcrank.record.contents import COMPONENTS
from bellcrank.scalar import Scalar, clip, sqrt, step
from bellcrank.sim.program.implicit_forces import ImplicitForces
from bellcrank.sim.program.imposed_motion import requirements
from bellcrank.sim.program.motion_with_friction import with_bearing_friction
from bellcrank.sim.run_arguments import NamedVector, call_user_function, check_known, named_scalars
from bellcrank.sim.system.element_forces import CHECKED_RUNS, check_start
from bellcrank.sim.system.joint_loads import NO_LOOPS
from bellcrank.sim.system.latch_equations import check_latch_starts, commanded_states, impulse, latch_rows
from bellcrank.sim.system.observed_columns import SolvedMotion, StateColumns, nominals, observable_units
from bellcrank.sim.system.prescribed_motions import check_motion_start
from bellcrank.sim.system.sampling import clocks
from bellcrank.sim.system.systems import System

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
MIN_CALL_OPERATIONS = 500  # operations of the smallest solution that is worth a call


@dataclass(frozen=True)
class Integral:
    """Integral over time of a power of a column."""

    column: str
    power: int = 1

    @property
    def name(self) -> str:
        """Name of the element of the state that holds the integral."""
        return f"integral({self.column}{f'^{self.power}' if self.power > 1 else ''})"


@dataclass(frozen=True)
class FactoredSystem:
    """Solver with given factors. bound_inputs: inputs of the graph besides the right-hand side."""

    graph: Graph
    bound_inputs: Mapping[str, Any]

    def solve(self, b: Sequence[Scalar]) -> State:
        """Return the solution for the right-hand side `b`."""
        return list(self.graph.call(**self.bound_inputs, b=list(b))["x"])


@dataclass(frozen=True)
class ImplicitSystems:
    """Graphs for one system, cached for all matrices with the same constants in the same places."""

    name: str
    graphs: dict[Any, Graph] = field(default_factory=dict)

    def implicit(self, jacobian: Sequence[Sequence[Scalar]] | LowRankMatrix | MatrixFreeJacobian, g: Scalar) -> Any:
        """Return a solver for 1 - g df/dy, by calls where it is large.

        Parameters
        ----------
        jacobian
            df/dy: a matrix, a product of two matrices, or an operator.
        g
            The factor, s.
        """
        if isinstance(jacobian, MatrixFreeJacobian):
            return jacobian.implicit(g)
        product = isinstance(jacobian, LowRankMatrix)
        matrices: dict[str, Any] = {"J": jacobian}
        if isinstance(jacobian, LowRankMatrix):
            matrices = {"left": jacobian.left, "right": jacobian.right}
        arrays = {name: np.array(x, dtype=object) for name, x in (matrices | {"g": g}).items()}

        def matrix(values: Mapping[str, Any]) -> Any:
            return LowRankMatrix(values["left"], values["right"]) if product else values["J"]

        def factored(**values: Any) -> dict[str, Any]:
            solver = implicit_solver(matrix(values), values["g"])
            middle = solver.middle if isinstance(solver, WoodburySolver) else solver
            return {"rows": middle.rows, "reciprocal": middle.reciprocal}

        def solved(rows: Any, reciprocal: Any, b: Any, **values: Any) -> dict[str, Any]:
            middle = LUFactors(rows, reciprocal)
            return {"x": (WoodburySolver(matrix(values), values["g"], middle) if product else middle).solve(b)}

        factors = self._graph("factors", factored, arrays)
        parts = factors.call(**arrays)
        known = {**parts, **arrays} if product else parts
        solution = self._graph("solution", solved, known, b=len(arrays.get("left", arrays.get("J", ()))))
        return FactoredSystem(solution, known) if solution.size >= MIN_CALL_OPERATIONS else implicit_solver(jacobian, g)

    def _graph(self, name: str, function: Any, arrays: Mapping[str, Array], **more: int) -> Graph:
        """Return the graph of a function of arrays, in which elements that are constants here stay constants.

        `more` are names and lengths of further inputs.
        """
        fixed = {key: [None if isinstance(x, Node) else float(x) for x in array.flat] for key, array in arrays.items()}
        key = name, tuple((k, arrays[k].shape, tuple(v)) for k, v in fixed.items())
        if key not in self.graphs:

            def body(**symbols: Any) -> dict[str, Any]:
                values = dict(symbols)
                for k, numbers in fixed.items():
                    argument = np.array(symbols[k], dtype=object)
                    for i, x in enumerate(numbers):
                        if x is not None:
                            argument.flat[i] = x
                    values[k] = argument.tolist()
                return function(**values)  # type: ignore[no-any-return]

            shapes = {**{k: array.shape for k, array in arrays.items()}, **{k: (n,) for k, n in more.items()}}
            self.graphs[key] = trace(f"{self.name}.{name}", body, shapes)
        return self.graphs[key]


@dataclass(frozen=True, eq=False)
class Dynamics(ABC):
    """Graphs of one system by one method of forward dynamics.

    integrals: elements of y that follow the state. wrt: parameters and elements of the initial state ("boom.mass",
    "boom.q"); y then ends with the derivatives of all its elements with respect to each of them.
    """

    system: System
    method: Method
    wrt: tuple[str, ...] = ()
    integrals: tuple[Integral, ...] = ()
    implicit: ImplicitForces | None = None  # forces that are implicit in fixed steps

    @property
    def plain_size(self) -> int:
        """Number of elements of y without its derivatives."""
        return self.system.size + len(self.integrals)

    @property
    def size(self) -> int:
        """Number of elements of y with its derivatives."""
        return self.plain_size * (1 + len(self.wrt))

    @property
    def arguments(self) -> dict[str, Shape]:
        """Shapes of the inputs of every graph here, except the free parameters `p`, which are added by `trace`."""
        return {**self._plain_arguments, "y": (self.size,)}

    @property
    def _plain_arguments(self) -> dict[str, Shape]:
        return {"t": (), "y": (self.plain_size,), **self.input_shapes}

    @property
    def input_shapes(self) -> dict[str, Shape]:
        """Shape of the inputs u of a graph; empty for a system without inputs."""
        return {"u": (len(self.system.inputs),)} if self.system.inputs else {}

    def trace(self, name: str, function: Callable[..., Any], shapes: Mapping[str, Shape]) -> Graph:
        """Return the graph `name` of a `function`, with inputs of the given `shapes`.

        Free parameters that the function uses become elements of the input p.
        """
        return trace(f"{self.system.mechanism.name}.{name}", function, shapes, self.system.parameters)

    def call(
        self, graph: Graph, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar] = (), **more: Scalar | Sequence[Scalar]
    ) -> dict[str, Any]:
        """Call a graph of this system inside another trace.

        Parameters
        ----------
        graph
            The graph.
        t
            Time, s.
        y
            State.
        u
            Inputs.
        **more
            Further inputs of the graph, by name.
        """
        return self.call_with(graph, {"t": t, "y": y, "u": u, **more})

    def call_with(self, graph: Graph, values: Mapping[str, Any]) -> dict[str, Any]:
        """Call a `graph` inside another trace, with those of the `values` that are its inputs and the parameters."""
        given = {name: values[name] for name in graph.inputs if name != "p"}
        if "p" in graph.inputs:
            scalars = (x for value in given.values() for x in np.array(value, dtype=object).flat)
            tape = next(x.tape for x in scalars if isinstance(x, Node))
            given["p"] = tape.inputs("p", graph.inputs["p"])
        return graph.call(**given)

    def _with_sensitivities(self, graph: Graph) -> Graph:
        if not self.wrt:
            return graph
        names = list(self.system.parameters)
        moving = {"p": [names.index(w) if w in names else -1 for w in self.wrt]} if names else {}
        return graph.varied("y", len(self.wrt), **moving)

    @cached_property
    def f(self) -> Graph:
        """(t, y, u, p) -> dy/dt."""
        return self.traced_rate()

    def traced_rate(self) -> Graph:
        """Trace dy/dt again, bypassing the cached graph."""

        def traced_command(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            return {"command": list(self.system.commanded(t, list(y), u)[0])}

        # Trace the control twice: one that keeps a symbol for its next call would otherwise pass as having no memory.
        self.trace("rehearsal", traced_command, self._plain_arguments)

        def rate(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            return {"dy": self.rate(t, self.stage_state(list(y)), u)}

        return self._with_sensitivities(self.trace("rate", rate, self._plain_arguments))

    @cached_property
    def fixed_step_rate(self) -> Graph:
        """(t, y, u, p, h) -> dy/dt in fixed steps of h, with forces that are too stiff for them filtered."""

        def rate(t: Scalar, y: Any, h: Scalar, u: Any = ()) -> dict[str, Any]:
            return {"dy": self.rate(t, self.stage_state(list(y)), u, h=h)}

        return self._with_sensitivities(self.trace("stepped_rate", rate, {**self._plain_arguments, "h": ()}))

    def rate(self, t: Scalar, y: State, u: Any, a: State | None = None, h: Scalar | None = None) -> State:
        """Return dy/dt over any scalar, at a state whose loops are closed.

        Parameters
        ----------
        t
            Time, s.
        y
            State.
        u
            Inputs.
        a
            Accelerations, where they are known already.
        h
            Length of a fixed step that is implicit in some forces (implicit_forces.py); None for the plain rate.
        """
        s, m = self.system, self.system.mechanism
        s = s if self.implicit is None or h is None else self.implicit.implicit_system(s, h)
        step("control")
        commands, control_rates = s.commanded(t, y, u)
        step("actuators")
        tau, rates = s.forces(t, y, commands)
        total_forces = [] if a is not None else s.pushed(t, y, tau)
        solved = SolvedMotion(a) if a is not None else self.solved_motion(t, y, total_forces)
        accelerations = solved.accelerations
        step("rate")
        q, v, _ = s.split(y)
        integrands: State = []
        if self.integrals:
            seen = StateColumns(s, lambda y, tau: solved, t, y, u)
            integrands = [seen[i.column] ** i.power for i in self.integrals]
        sampled_rates = [0.0] * sum(len(c.variables) for c in s.sampled)
        if any(e.states for e in s.elements):
            rates = [*rates, *(x for act in s.acts(t, y) for x in act.rates)]
        rates = [*rates, *[0.0] * sum(len(e.states) for e in s.latches)]
        if self.implicit is not None and h is not None:
            added = self.implicit.matrix(s, t, y, commands, h, solved.resistance)
            if any(added):
                for act in solved.bearings:
                    total_forces = [f + act.torque.get(k, 0.0) for k, f in enumerate(total_forces)]
                accelerations = self.filtered_accelerations(y, total_forces, accelerations, added)
        own = [*kinematics.rate(m.tree, list(q), list(v)), *accelerations]
        return [*own, *rates, *control_rates, *sampled_rates, *integrands]

    def solved_motion(self, t: Scalar, y: Sequence[Scalar], tau: Sequence[Scalar], shown: bool = False) -> SolvedMotion:
        """Return the accelerations with prescribed motions, latches and friction of bearings, and their forces.

        Parameters
        ----------
        t
            Time, s.
        y
            State.
        tau
            Forces on the coordinates.
        shown
            Use accelerations that are valid in any row of a record (`shown`).
        """
        s, solved = self.system, SolvedMotion(self.accelerations(y, tau, shown))
        if (s.motions or s.latches) and (imposed := requirements(s, t, y)) is not None:
            solved = imposed.imposed(solved.accelerations, partial(self.force_response, y, shown=shown))
        return with_bearing_friction(self, t, y, tau, solved, shown) if self.system.bearings else solved

    @cached_property
    def friction_margin(self) -> Graph:
        """(t, y, u, p) -> a number that is positive if the friction of bearings has exactly one solution."""
        s = self.system

        def margin(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            tau = s.pushed(t, list(y), s.forces(t, list(y), s.commanded(t, list(y), u)[0])[0])
            return {"margin": self.solved_motion(t, self.stage_state(list(y)), tau).margin}

        return self.trace("friction_margin", margin, self._plain_arguments)

    def multipliers(
        self, y: Sequence[Scalar], tau: Sequence[Scalar], bare: bool, shown: bool
    ) -> tuple[LoopRank, State]:
        """Return the rank of the loop equations and their multipliers: none, without loops.

        Parameters
        ----------
        y
            State.
        tau
            Forces on the coordinates.
        bare
            Without all other forces, at rest.
        shown
            Use a form that is valid in any row of a record.
        """
        return NO_LOOPS, []

    # -- accelerations, by the method

    @abstractmethod
    def solved(self, q: State, v: State, tau: State, bare: bool = False) -> State:
        """Return the accelerations.

        Parameters
        ----------
        q, v
            Positions and velocities.
        tau
            Forces on the coordinates.
        bare
            Without all other forces: gravity, springs, damping, friction and stabilisation of loops.
        """

    def solved_in_rows(self, q: State, v: State, tau: State, bare: bool = False) -> State:
        """Return what `solved` does of `q`, `v`, `tau` and `bare`, in a form that is valid in any row of a record."""
        return self.solved(q, v, tau, bare)

    def accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar], shown: bool = False) -> State:
        """Return the accelerations in the state `y` by the forces `tau`; if `shown`, valid in any row of a record."""
        q, v, _ = self.system.split(y)
        return (self.solved_in_rows if shown else self.solved)(list(q), list(v), list(tau))

    def force_response(self, y: Sequence[Scalar], force: Sequence[Scalar], shown: bool) -> State:
        """Return what a force on the coordinates adds to the accelerations.

        Parameters
        ----------
        y
            State.
        force
            Generalised force, (nv,).
        shown
            Use a form that is valid in any row of a record.
        """
        q, v, _ = self.system.split(y)
        return (self.solved_in_rows if shown else self.solved)(list(q), [0.0] * len(v), list(force), bare=True)

    @abstractmethod
    def filtered_accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar], a: State, added: Rows) -> State:
        """Return a - (1 - S)^2 a of the accelerations a, with more inertia in the mass matrix; see implicit_forces.py.

        Parameters
        ----------
        y
            State.
        tau
            Forces that give the accelerations.
        a
            Accelerations.
        added
            Lower triangle of the matrix that is added to the mass matrix.
        """

    def force_residual(self, t: Scalar, y: State, u: Any, a: State) -> State:
        """Return tau - ID(q, v, a), the forces that remain at the accelerations `a`, by inverse dynamics.

        Parameters
        ----------
        t, y, u
            Time, state and inputs.
        a
            Accelerations.
        """
        s = self.system
        tau = s.pushed(t, y, s.forces(t, y, s.commanded(t, y, u)[0])[0])
        q, v, _ = s.split(y)
        tree = graphs.quantity_tree(s.mechanism, "inverse_dynamics", METHODS["rnea"])
        needed = METHODS["rnea"].function("inverse_dynamics")(tree, list(q), list(v), a)
        return [x - z for x, z in zip(tau, needed, strict=True)]

    # -- constraints: none here, since every state of a tree is admissible; looped_dynamics.py has those of closed loops

    @cached_property
    def closure(self) -> Closure:
        """Numerical treatment of closed loops between steps, which graphs cannot do."""
        return Closure(self)

    @property
    def measured_fields(self) -> tuple[str, ...]:
        """Fields of a program's state in addition to those of every run."""
        return ()

    def stage_state(self, y: State) -> State:
        """Return the state `y` of a stage of a step as the rate uses it."""
        return y

    @property
    def independent(self) -> list[int]:
        """Elements of v, and of q as displacements, that determine all others."""
        return list(range(self.system.mechanism.nv))

    def consistent_state(self, y: State) -> State:
        """Return the state that follows from the independent elements of `y`.

        A consistent state is unchanged, and its derivatives are those along consistent states.
        """
        return y

    def step_end_state(self, step: Step, old: Mapping[str, Any]) -> tuple[State, Scalar, dict[str, Any]]:
        """Return the state at the end of a step, trouble (a status, or 0), and new values of the measured fields.

        Parameters
        ----------
        step
            The step of the integrator.
        old
            Fields of the program's state before the step.
        """
        return step.y, 0.0, {}

    def constrained_state(self, y: State) -> State:
        """Return a state `y` between steps, or after an event, projected onto its constraints."""
        return self.latched_state(y)

    def commanded_latches(self, t: Scalar, y: State, u: Any) -> tuple[State, Scalar]:
        """Return the state `y` at the time `t` with latches as commanded with inputs `u`, and 1 if one closes now."""
        s, latches = self.system, self.system.commanded_latches
        if not latches:
            return y, 0.0
        q, v, x = s.split(y)
        given = t, q, v, x, NamedVector("u", s.inputs, u)
        wanted: State = []
        for e in latches:
            assert e.command is not None
            what = f'command of latch "{e.name}"'
            wanted += named_scalars(what, call_user_function(what, e.command, *given), [e.name])
        states = dict(zip(x.names, x, strict=True))
        changed, closes = commanded_states(s.mechanism, latches, wanted, list(q), states)
        new = [*q, *v, *(changed.get(name, old) for name, old in states.items()), *y[s.size :]]
        return select(closes > 0.0, self.latched_state(new), new), closes

    def latched_state(self, y: State) -> State:
        """Return the state `y` with velocities that closed latches allow, after an impulse of their joints."""
        s = self.system
        if not s.latches:
            return y
        q, v, x = s.split(y)
        rows = latch_rows(s.mechanism, s.latches, list(q), list(v), dict(zip(x.names, x, strict=True)))
        moved = impulse(rows, partial(self.force_response, y, shown=False), list(v))
        return [*q, *moved, *y[len(q) + len(v) :]]

    def observed_row(self, y: State) -> tuple[State, Scalar]:
        """Return a row `y` between two steps, and 1 if it needs `closure.polished`, else 0."""
        return y, 0.0

    # -- derivatives

    @cached_property
    def state_jacobian(self) -> Graph:
        """(t, y, u, p) -> df/dy."""
        return self.f.jacobian("dy", "y")

    @cached_property
    def time_derivative(self) -> Graph:
        """(t, y, u, p) -> df/dt."""
        return self.f.jacobian("dy", "t")

    def linearised(
        self, t: Scalar, y: State, u: Sequence[Scalar]
    ) -> tuple[list[State] | LowRankMatrix | MatrixFreeJacobian, State]:
        """Return df/dy and df/dt inside another trace, at the time `t`, state `y` and inputs `u`."""
        J = self.call(self.state_jacobian, t, y, u)["ddy_dy"]
        return [list(row) for row in J], list(self.call(self.time_derivative, t, y, u)["ddy_dt"])

    @cached_property
    def outputs(self) -> Graph:
        """(t, y, u, p) -> accelerations, forces of drives and external forces, commands, outputs of the user."""
        s = self.system

        def seen(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            y = list(y)
            commands, _ = s.commanded(t, y, u)
            tau, _ = s.forces(t, y, commands)
            external, acts = s.outside(t, y)
            solved = self.solved_motion(t, y, s.pushed(t, y, tau), shown=True)
            out = {"a": solved.accelerations, "tau": tau, "external": external, "command": commands}
            out |= {"motion": list(solved.motion), "drive": list(solved.drive)} if s.motions else {}
            between = [*s.acts(t, y, shown=True), *solved.latches, *solved.bearings]
            if between:
                out |= {"element": s.summed(between, y), "acts": [x for act in between for x in act.shown]}
            wrench = [x for w in acts.values() for x in w]
            user = list(s.observed(t, y, u).values())
            return out | ({"wrench": wrench} if wrench else {}) | ({"output": user} if user else {})

        return self._with_sensitivities(self.trace("outputs", seen, self._plain_arguments))

    @cached_property
    def state_rates(self) -> Graph:
        """(t, y, u, p) -> rates of the states of the system, with accelerations that are valid in any row."""
        s = self.system

        def seen(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            y = list(y)
            tau, _ = s.forces(t, y, s.commanded(t, y, u)[0])
            a = self.solved_motion(t, y, s.pushed(t, y, tau), shown=True).accelerations
            return {"rate": self.rate(t, y, u, a)[: self.plain_size - len(self.integrals)]}

        return self.trace("state_rates", seen, self._plain_arguments)

    def columns_graph(self, names: Sequence[str]) -> Graph:
        """Return the graph (t, y, u, p) -> columns `names` of the record, followed by their derivatives."""

        def seen(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            columns = StateColumns(self.system, partial(self.solved_motion, t), t, list(y), u)
            return {"z": [columns[name] for name in names]}

        return self._with_sensitivities(self.trace("watching", seen, self._plain_arguments))

    @property
    def elements(self) -> list[str]:
        """Names of the elements of the state and of its integrals."""
        m = self.system.mechanism
        names = [*(f"{n}.q" for n in m.columns[0]), *(f"{n}.v" for n in m.columns[1])]
        return [*names, *(x.name for x in self.system.states), *(i.name for i in self.integrals)]

    def initial_state(self, y: Array) -> Array:
        """Return the initial state `y`, (..., size), followed by zero integrals and by its derivatives."""
        if self.size == y.shape[-1]:
            return y
        n, elements = self.plain_size, self.elements
        out = np.zeros((*y.shape[:-1], self.size))
        out[..., : y.shape[-1]] = y
        for j, w in enumerate(self.wrt):
            if w in elements:
                out[..., n * (1 + j) + elements.index(w)] = 1.0
        return out

    def problem(self, u: Sequence[Scalar] = (), h: Scalar | None = None) -> Problem:
        """Return the Problem of an integrator, in a trace in which y and t are nodes.

        Parameters
        ----------
        u
            Inputs.
        h
            Length of fixed steps; None where an error estimate chooses them.
        """
        s, m = self.system, self.system.mechanism

        def f(t: Scalar, y: State) -> State:
            if self.implicit is None or h is None:
                return list(self.call(self.f, t, y, u)["dy"])
            return list(self.call(self.fixed_step_rate, t, y, u, h=h)["dy"])

        def jacobian(t: Scalar, y: State) -> tuple[list[State] | LowRankMatrix | MatrixFreeJacobian, State]:
            return self.linearised(t, y, u)

        def moved(q: State, displacement: State) -> State:
            return kinematics.integrate(m.tree, q, displacement)

        project = projection(s) if s.quaternions or any(s.limits()) else identity
        roll = quaternion_rotation(s) if s.quaternions else None
        solver = self._implicit_systems.implicit
        return Problem(f, m.nq, m.nv, self.size - m.nq - m.nv, jacobian, moved, project, roll, solver)

    @cached_property
    def _implicit_systems(self) -> ImplicitSystems:
        return ImplicitSystems(self.system.mechanism.name)

    @cached_property
    def columns(self) -> dict[str, tuple[str, int]]:
        """Columns that follow from the state: for each its key in `outputs` and its number there."""
        s, v = self.system, self.system.mechanism.columns[1]
        names = {key: [f"{name}.{key}" for name in v] for key in ("a", "tau", "external")}
        names["wrench"] = [f"{frame}.{c}" for frame in s.wrenches for c in COMPONENTS]
        if s.elements or s.solved_elements:
            names["element"] = [f"{name}.element" for name in v]
            names["acts"] = list(s.element_units)
        if s.motions:
            names["motion"] = [f"{name}.motion" for name in v]
            names["drive"] = [f"{name}.drive" for name in s.motions]
        names["command"] = [f"{name}.command" for name in s.commands]
        names["output"] = list(s.outputs)
        shown = {key: column_names for key, column_names in names.items() if key != "command" or s.actuators}
        places_by_name = {name: (key, i) for key, column_names in shown.items() for i, name in enumerate(column_names)}
        plain = list(places_by_name.items())
        for j, w in enumerate(self.wrt, 1):
            places_by_name |= {sensitivity_name(name, w): (key, j * len(names[key]) + i) for name, (key, i) in plain}
        return places_by_name

    def check_starts(self, y: Array, label: str = "q0") -> None:
        """Raise an InputError if bodies are inside each other in a start, or if it is not on the prescribed motions.

        Parameters
        ----------
        y
            Starts, (runs, size); only the first few are checked.
        label
            Argument that gave them.
        """
        m = self.system.mechanism
        if self.system.elements:
            check_start(m, self.system.elements, y[:, : m.nq], label)
        if self.system.motions:
            check_motion_start(m, self.system.motions, y[:CHECKED_RUNS])
        if self.system.latches:
            check_latch_starts(m, self.system.latches, [x.name for x in self.system.states], y[:CHECKED_RUNS])

    def checked_start(self, y: Array, parameters: Array) -> Array:
        """Return checked starts with loops closed, for runs, gradients, drives and pages.

        Parameters
        ----------
        y
            Starts, (runs, size).
        parameters
            Free parameters, (runs, np).
        """
        self.check_starts(y)
        return self.closure.checked(y, parameters)

    @cached_property
    def ports(self) -> Ports:
        """Description of the inputs, states and columns of a program of this system."""
        s = self.system
        resting_state = [*[0.0] * s.mechanism.nv, *(x.initial for x in s.states)]
        return Ports(
            (*self.elements, *(sensitivity_name(name, w) for w in self.wrt for name in self.elements)),
            {name: s.defaults.get(name, 0.0) for name in s.inputs},
            s.parameters,
            self.columns,
            lambda: observable_units(s) | s.motion_units,
            lambda: self.initial_state(np.array([*self.closure.neutral(), *resting_state], float)),
            lambda: self.outputs,
            lambda: self.f,
            make_nominals=lambda: nominals(s),
            clocks=clocks(s),
            commanded=tuple(e.name for e in s.commanded_latches),
        )


def sensitivity_name(column: str, wrt: str) -> str:
    """Return the name of the sensitivity of the column `column` with respect to `wrt`."""
    return f"d({column})/d({wrt})"


def check_sensitivities(dynamics: Dynamics) -> None:
    """Raise an InputError if the sensitivities of the dynamics `dynamics` are with respect to unknown elements."""
    if dynamics.wrt and (latches := dynamics.system.commanded_latches):
        raise InputError(
            f'sensitivities do not support the command of latch "{latches[0].name}", which changes the state '
            "discontinuously. Leave the command out, and let the latch stay as it starts."
        )
    known = [*dynamics.system.parameters, *dynamics.elements]
    check_known("sensitivities", "parameter or state", dynamics.wrt, known)


def projection(s: System) -> Callable[[State], State]:
    """Return the projection for the system `s`: it normalises quaternions and clips actuator states to their limits."""
    m = s.mechanism
    bounds = s.limits()

    def project(y: State) -> State:
        y = normalised(s, y)
        for k, pair in enumerate(bounds, m.nq + m.nv):
            if pair is not None:
                y[k] = clip(y[k], *pair)
        return y

    return project


def normalised(s: System, y: State) -> State:
    """Return the state `y` of the system `s` with normalised quaternions."""
    y = list(y)
    for i in s.quaternions:
        n = 1.0 / sqrt(sum((x * x for x in y[i + 1 : i + 4]), y[i] * y[i]))
        y[i : i + 4] = [x * n for x in y[i : i + 4]]
    return y


def quaternion_rotation(s: System) -> Callable[[State, State, State], State]:
    """Return (q, q1, displacement) -> q1 with its quaternions rotated from those of q by the displacement.

    (1 + w/2) applied after the quaternion of q is, except for its length, the Cayley map of w. `s` is the system.
    """

    def roll(q: State, q1: State, displacement: State) -> State:
        change, out = kinematics.rate(s.mechanism.tree, q, displacement), list(q1)
        for i in s.quaternions:
            out[i : i + 4] = [a + b for a, b in zip(q[i : i + 4], change[i : i + 4], strict=True)]
        return out

    return roll


# -- states between steps


@dataclass(frozen=True, eq=False)
class RunGroup:
    """Runs that use the same graphs."""

    dynamics: Dynamics
    members: Array  # indices of the runs
    bound: Array | None = None  # largest allowed element of E for each run; above it the partition must change


ToEnd = Callable[[Dynamics, Array], Array]  # runs a state of a program to its end by the graphs of some dynamics


class Closure:
    """Treatment of the states of a system without loops: every state is admissible, and one set of graphs suits all.

    y is (runs, size) and parameters (runs, np), or both without the first axis in methods for one state.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics

    def neutral(self) -> Array:
        """Return the default configuration of the mechanism."""
        return self.dynamics.system.mechanism.neutral()

    def checked(self, y: Array, parameters: Array) -> Array:
        """Return the starts `y` with `parameters`, loops closed, or raise an error if the mechanism cannot take one."""
        return y

    def grouped(self, y: Array, parameters: Array) -> list[RunGroup]:
        """Return the runs in states `y` with `parameters`, grouped by the graphs that they use from here."""
        return [RunGroup(self.dynamics, np.arange(len(y)))]

    def common_dynamics(self, y: Array, parameters: Array, independent: Sequence[str] = ()) -> Dynamics:
        """Return the dynamics that suit all states at once.

        Parameters
        ----------
        y
            States, (runs, size).
        parameters
            Free parameters, (runs, np).
        independent
            Joints that must be independent coordinates.
        """
        self.check_independent(independent)
        return self.dynamics

    def check_independent(self, names: Sequence[str]) -> None:
        """Raise an InputError if one of `names` is not an element of v."""
        m = self.dynamics.system.mechanism
        check_known(f'independent, of "{m.name}"', "joint", names, m.columns[1])

    def closed_points(self, y: Array, parameters: Array) -> tuple[Array, Array]:
        """Return the states `y` with `parameters`, loops closed, and a mask of the singular ones, which are unchanged.

        Raise an error where a state is impossible.
        """
        return y, np.zeros(len(y), bool)

    def polished(self, y: Array, parameters: Array) -> Array:
        """Return the row `y` with `parameters`, its loops closed numerically, where the graphs could not do it."""
        return y

    def provenance(self, widest: float, switched: int) -> dict[str, Any]:
        """Return the provenance entries for the loops.

        Parameters
        ----------
        widest
            Largest distance by which loops were open.
        switched
            Number of changes of the partition.
        """
        return {}

    def open_loop_message(self, y: Array, parameters: Array, t: float) -> str:
        """Return why loops could not be closed in a step from `y` with `parameters` at the time `t`."""
        return ""

    def crossed(self, layout: Layout, state: Array, p: Array, run: ToEnd) -> tuple[Array, list[Array]] | None:
        """Return the state behind a singular configuration and the rows due on the way; None if there is none.

        Parameters
        ----------
        layout
            Layout of the state of the program.
        state
            State of the program whose next step fails.
        p
            Free parameters.
        run
            Function that runs a state to its end by the graphs of some dynamics.
        """
        return None

    def near_singular_text(self, y: Array, parameters: Array) -> str:
        """Return a description if `y` with `parameters` is near a singular configuration, else an empty string."""
        return ""
