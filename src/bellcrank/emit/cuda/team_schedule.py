"""A team's plan as a Schedule, for inspection: the work of a member between two barriers is a task."""

from __future__ import annotations

from bellcrank.emit.cuda.batch_kernel import BatchKernelText
from bellcrank.emit.cuda.team import BARRIER_COST, INSTRUCTION_COSTS
from bellcrank.emit.cuda.units import BARRIER
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import OPS
from bellcrank.scheduling import Machine, Schedule
from bellcrank.scheduling.coarsening import leading_labels
from bellcrank.scheduling.list_scheduling import fixed_order_schedule
from bellcrank.scheduling.machines import complete
from bellcrank.scheduling.task import tasks_from_groups


def team_schedule(graph: Graph, members: int = 0, dtype: str = "float64") -> Schedule:
    """Return the schedule of a team for `graph`.

    Parameters
    ----------
    graph
        Graph of one state.
    members
        Threads of a state; 0: as many as are predicted to be fastest.
    dtype
        Type of the numbers.
    """
    batch = BatchKernelText(graph, dtype, members=members)
    team, units = batch.plan.team, batch.units
    tasks: dict[tuple[int, int], dict[int, Node]] = {}
    for member, stream in enumerate(team.streams):
        barriers = 0
        for unit in stream:
            barriers += unit is BARRIER
            stack = [n for n in unit.defines if n.op != "input"]
            while stack:  # fused nodes are computed with their unit
                n = stack.pop()
                tasks.setdefault((barriers, member), {})[n.serial] = n
                stack += [a for a in n.operands if a.serial in units.inlined]
    keys = sorted(tasks)
    groups = [[tasks[key][serial] for serial in sorted(tasks[key])] for key in keys]
    cost = {op: INSTRUCTION_COSTS.get(op, 0.0 if op == "neg" else 1.0) for op in OPS}
    names = [leading_labels((n.label, cost[n.op]) for n in group) for group in groups]
    todo = tasks_from_groups(graph.name, "team", groups, names)
    machine = Machine(f"gpu({len(team)})", complete(len(team)), cost, BARRIER_COST, 1.0, unit="instructions")
    return fixed_order_schedule(todo, machine, [member for _, member in keys])
