"""A recursion whose runs go side by side (emit/cpu/waves.py) on several cores: each takes its share of a wave.

Waves of many runs are shared out, all others are the caller's; it says when a wave that is shared out may begin, and
waits until everybody is done with it. All work in one workspace, which the module owns: only one state is computed by
all cores at a time (handover.py), and who computes alone has a workspace of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from bellcrank.emit.cores import handover
from bellcrank.emit.cores.protocol import LINE, at, messages_start
from bellcrank.emit.cpu import llvm, rolled_module, sincos
from bellcrank.emit.cpu.waves import Phase, Waves
from bellcrank.graph.recursion import Recursion
from bellcrank.quoting import comment

WORTH = 64  # places of a run in a wave that is shared out: a message costs as much as some ten


class Sharing:
    """Who does what in which order, and the flags between."""

    def __init__(self, waves: Waves, processors: int) -> None:
        self.waves, self.processors = waves, processors
        self.flags = 0

    def wide(self, phase: Phase) -> bool:
        """Whether it is shared out: then each wave of it that has a bundle for everybody."""
        return any(self._shared(phase, i) for i in range(len(phase.waves)))

    def _shared(self, phase: Phase, i: int) -> bool:
        wave, shape = phase.waves[i], self.waves.shapes[phase.waves[i].shape]
        bundles = (wave.last - wave.first) // self.waves.lanes
        return bundles >= self.processors and shape.places >= WORTH

    def flag(self, phase: int, k: int) -> str:
        """k: whose message; 0 is the caller's."""
        return at(messages_start(self.processors) + LINE * (phase * self.processors + k))

    @property
    def size(self) -> int:
        phases = len(list(self.waves.phases()))
        return messages_start(self.processors) + LINE * phases * self.processors

    def lines(self, me: int) -> Iterator[str]:
        """What one of them does; between waves that are shared out, the first of the others looks at the inputs."""
        looked = False
        for n, phase in enumerate(self.waves.phases()):
            wide = self.wide(phase)
            if me and not wide:
                continue
            if wide and me:
                yield "  " + handover.awaited(self.flag(n, 0), me)
            elif wide:
                yield "  " + handover.sent(self.flag(n, 0))
            for i, wave in enumerate(phase.waves):
                if self._shared(phase, i):
                    yield from self.waves.call(phase.channel, wave, me, self.processors)
                elif not me:
                    yield from self.waves.call(phase.channel, wave)
            if wide and me:
                yield "  " + handover.sent(self.flag(n, me))
            elif wide:
                yield from ("  " + handover.awaited(self.flag(n, k), 0) for k in range(1, self.processors))
            if wide and me == 1 and not looked:
                looked = True
                arrays = ", ".join(f"ptr %{name}" for name in self.waves.names)
                yield f"  %bad = call i64 @looked({arrays})"

    def stream(self, me: int) -> str:
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


def shares(r: Recursion, processors: int, width: int, dtype: str) -> bool:
    """Whether there is anything for everybody."""
    found = Sharing(Waves(r, width, dtype, "single"), processors)
    return processors > 1 and any(map(found.wide, found.waves.phases()))


def source(r: Recursion, processors: int, width: int, triple: str, dtype: str) -> str:
    """The whole module, but for the Python entry."""
    waves = Waves(r, width, dtype, "single")
    sharing = Sharing(waves, processors)
    arrays = llvm.arrays(r)
    workspace = llvm.workspace(0, waves.w)
    return "\n".join(
        [
            f"; {comment(r.name)} on {processors} cores: {r.count().arithmetic} operations, {width} lanes of {dtype}",
            sincos.definition(width, dtype),
            *llvm.library(waves.w),
            waves.text(),
            rolled_module.state(r, waves),
            llvm.one(r, rolled_module.Sized(waves.size, waves.w), "alone"),  # type: ignore[arg-type]
            f"@common = internal global [{waves.size * waves.w.bytes} x i8] zeroinitializer, align 64",
            *(sharing.stream(me) for me in range(processors)),
            handover.definition(arrays, workspace, [64] * (processors - 1), sharing.size, triple),
        ]
    )
