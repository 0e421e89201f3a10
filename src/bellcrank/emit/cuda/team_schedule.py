"""A team's plan as a Schedule, for inspection: the work of a member between two barriers is a task."""

from __future__ import annotations

from bellcrank.emit.cuda.straight import Straight
from bellcrank.emit.cuda.team import COSTS, MEET, MEETING
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import OPS
from bellcrank.scheduling import Machine, Schedule
from bellcrank.scheduling.coarse import leading
from bellcrank.scheduling.listing import followed
from bellcrank.scheduling.machines import complete
from bellcrank.scheduling.task import grouped


def schedule(graph: Graph, members: int = 0, dtype: str = "float64") -> Schedule:
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
    made = Straight(graph, dtype, members=members)
    team, units = made.plan.team, made.units
    tasks: dict[tuple[int, int], dict[int, Node]] = {}
    for member, stream in enumerate(team.streams):
        met = 0
        for unit in stream:
            met += unit is MEET
            stack = [n for n in unit.defines if n.op != "input"]
            while stack:  # fused nodes are computed with their unit
                n = stack.pop()
                tasks.setdefault((met, member), {})[n.serial] = n
                stack += [a for a in n.operands if a.serial in units.inside]
    keys = sorted(tasks)
    groups = [[tasks[key][serial] for serial in sorted(tasks[key])] for key in keys]
    cost = {op: COSTS.get(op, 0.0 if op == "neg" else 1.0) for op in OPS}
    names = [leading((n.label, cost[n.op]) for n in group) for group in groups]
    todo = grouped(graph.name, "team", groups, names)
    machine = Machine(f"gpu({len(team)})", complete(len(team)), cost, MEETING, 1.0, unit="instructions")
    return followed(todo, machine, [member for _, member in keys])
