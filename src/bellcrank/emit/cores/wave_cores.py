"""Recursion with parallel runs (emit/llvm/wave_functions.py) on several cores: each core computes its share of a wave.

Waves with many runs are divided among the cores, all others belong to the caller; the caller signals when a divided
wave may begin, and waits until all cores have finished it. All cores work in one workspace, which the module owns: only
one state at a time is computed by all cores (handover.py), and a caller that computes alone has its own workspace.
"""

from __future__ import annotations

from collections.abc import Iterator

from bellcrank.emit.cores import handover
from bellcrank.emit.cores.handover_worker import LINE_BYTES, messages_start, shared_address
from bellcrank.emit.cpu import module_functions, recursion_module
from bellcrank.emit.llvm.host import host
from bellcrank.emit.llvm.wave_functions import Phase, Waves
from bellcrank.graph.cells import ANGLES_CHANNEL
from bellcrank.graph.recursion import Recursion
from bellcrank.quoting import comment
from bellcrank.scheduling import Machine, Schedule
from bellcrank.scheduling.placement import schedule_loads
from bellcrank.scheduling.task import LoadTask

MIN_PLACES = 64  # least places of a run in a divided wave: a message costs as much as about ten of them


class WaveSharing:
    """Assignment of waves to cores, and the flags between them."""

    def __init__(self, r: Recursion, processors: int, dtype: str) -> None:
        """Divide the waves of the recursion `r` among `processors` cores, for the type `dtype`."""
        self.waves, self.processors = Waves(r, host().lanes(dtype), dtype, "single"), processors

    @property
    def used(self) -> int:
        """Number of cores that compute the recursion: one if no wave is wide enough to be divided."""
        divided = self.processors > 1 and any(map(self.is_divided, self.waves.phases()))
        return self.processors if divided else 1

    def is_divided(self, phase: Phase) -> bool:
        """Return whether `phase` is divided; then each of its waves is that has a bundle for every core."""
        return any(self._is_wave_divided(phase, i) for i in range(len(phase.waves)))

    def _is_wave_divided(self, phase: Phase, i: int) -> bool:
        wave, shape = phase.waves[i], self.waves.shapes[phase.waves[i].shape]
        bundles = (wave.last - wave.first) // self.waves.lanes
        return bundles >= self.processors and shape.places >= MIN_PLACES

    def flag(self, phase: int, k: int) -> str:
        """Return the address of a message flag.

        Parameters
        ----------
        phase
            Index of the phase.
        k
            Core that sends the message; 0 is the caller.
        """
        return shared_address(messages_start(self.processors) + LINE_BYTES * (phase * self.processors + k))

    @property
    def size(self) -> int:
        """Bytes of @shared."""
        phases = len(list(self.waves.phases()))
        return messages_start(self.processors) + LINE_BYTES * phases * self.processors

    def lines(self, me: int) -> Iterator[str]:
        """Yield the code of core `me`; between divided waves, core 1 checks the inputs for NaN."""
        inputs_checked = False
        for n, phase in enumerate(self.waves.phases()):
            wide = self.is_divided(phase)
            if me and not wide:
                continue
            if wide and me:
                yield "  " + handover.await_instruction(self.flag(n, 0), me)
            elif wide:
                yield "  " + handover.send_instruction(self.flag(n, 0))
            for i, wave in enumerate(phase.waves):
                if self._is_wave_divided(phase, i):
                    yield from self.waves.share_call(phase.channel, wave, me, self.processors)
                elif not me:
                    yield from self.waves.share_call(phase.channel, wave)
            if wide and me:
                yield "  " + handover.send_instruction(self.flag(n, me))
            elif wide:
                yield from ("  " + handover.await_instruction(self.flag(n, k), 0) for k in range(1, self.processors))
            if wide and me == 1 and not inputs_checked:
                inputs_checked = True
                arrays = ", ".join(f"ptr %{name}" for name in self.waves.names)
                yield f"  %bad = call i64 @looked({arrays})"

    def stream(self, me: int) -> str:
        """Return the function of core `me` as LLVM IR."""
        args = ", ".join(f"ptr noalias %{name}" for name in ("own", *self.waves.names))
        result = "%bad" if me == 1 else "0"
        return "\n".join(
            [
                f"define internal i64 @stream_{me}({args}, i64 %step) noinline nounwind {{",
                "  %ws = getelementptr i8, ptr @common, i64 0",
                *self.lines(me),
                f"  ret i64 {result}",
                "}",
            ]
        )

    def schedule(self, machine: Machine) -> Schedule:
        """Return the schedule on `machine`: one load per share of a wave, which depends on the whole phase before."""
        loads, core_of, previous_phase = list[LoadTask](), list[int](), list[int]()
        for phase in self.waves.phases():
            this_phase = []
            for i, wave in enumerate(phase.waves):
                bundles = (wave.last - wave.first) // self.waves.lanes
                p = self.processors if self._is_wave_divided(phase, i) else 1
                for k in range(p):
                    times = bundles * (k + 1) // p - bundles * k // p
                    name = f"{self._direction(phase.channel)}[{self._label(wave.shape)}]"
                    needs = dict.fromkeys(previous_phase, 1)
                    this_phase.append(len(loads))
                    operations = self._operations_per_bundle(phase.channel, wave.shape)
                    loads.append(LoadTask(len(loads), name, (), needs, 1, operation_counts=operations, times=times))
                    core_of.append(k)
            previous_phase = this_phase
        return schedule_loads(self.waves.r.name, loads, core_of, machine)

    def _direction(self, channel: int) -> str:
        return (
            "angles" if channel == ANGLES_CHANNEL else f"{'out' if self.waves.r.outwards[channel] else 'in'} {channel}"
        )

    def _label(self, shape: int) -> str:
        wave_shape = self.waves.shapes[shape]
        names = " ".join(self.waves.r.cells[c].graph.name for c in wave_shape.cells)
        return f"{wave_shape.repeats} x {names}" if wave_shape.repeats > 1 else names

    def _operations_per_bundle(self, channel: int, shape: int) -> dict[str, int]:
        """Return the operations of one bundle, the same as those of one run."""
        wave_shape, operations = self.waves.shapes[shape], dict[str, int]()
        for c in wave_shape.cells:
            cut = self.waves.r.cell_loops[c]
            for node in cut.body(channel).graph.nodes:
                if node.op != "input":
                    operations[node.op] = operations.get(node.op, 0) + wave_shape.repeats
            if channel == ANGLES_CHANNEL and cut.angle_count:
                for op in ("sin", "cos"):
                    operations[op] = operations.get(op, 0) + wave_shape.repeats * cut.angle_count
        return operations

    def source(self) -> str:
        """Return the module as LLVM IR, without the Python entry."""
        waves, r, processors = self.waves, self.waves.r, self.processors
        arrays = module_functions.array_names(r)
        workspace = module_functions.workspace_text(0, waves.w)
        operations = f"{r.count().arithmetic} operations, {waves.lanes} lanes of {waves.dtype}"
        title = f"{comment(r.name)} on {processors} cores: {operations}"
        return "\n".join(
            [
                *module_functions.module_head(title, waves.lanes, waves.dtype),
                waves.text(),
                recursion_module.checked_state_function(r, waves),
                module_functions.state_function(r, waves.size, waves.w, "alone"),
                f"@common = internal global [{waves.size * waves.w.bytes} x i8] zeroinitializer, align 64",
                *(self.stream(me) for me in range(processors)),
                handover.definition(arrays, workspace, [64] * (processors - 1), self.size, host().triple),
            ]
        )
