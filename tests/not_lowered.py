"""Constants that decide something, and are no thresholds between code paths of small and of large mechanisms.

Each stands under the reason; a new constant that does lead to other code belongs into TABLE of lowered.py instead.
"""

from __future__ import annotations

NOT_LOWERED: dict[str, str] = {
    "how exact something is: tolerances, rounding, condition numbers, sizes from which on something counts": """
        dynamics.angeles: NOTHING SMALL_PIVOT
        dynamics.immobility: CLEARLY HEAVY SINGULAR
        dynamics.loops.assembly: AIMED_AT CLOSED EXACT LONGEST_STEP MOST_STEPS OPEN ROUGH ROUNDS SHORTEST_STEP
        dynamics.loops.assembly: SLOWLY STRIDE
        dynamics.loops.conditioning: COMMON EPSILON LOOKS MOST_REFINEMENTS WANTED WORSE
        dynamics.loops.equation_analysis: DOUBTFUL_WALKERS EXACT_NOISE FAR_STEPS FAR_WALKERS HOLDS
        dynamics.loops.equation_analysis: MOST_NUMBERS MOST_TIED MOST_TRIES NOTHING OPEN_SAID PATTERN
        dynamics.loops.equation_analysis: SLACK_MARGIN STEPS TIED WALKERS
        dynamics.loops.from_guess: BESIDE
        dynamics.loops.layer: TRUST
        dynamics.loops.partition: STEEP STRONG
        dynamics.loops.rank_decision: CEILING CLEAR SMALLEST
        dynamics.loops.scaling: NEGLIGIBLE ROUNDING
        dynamics.segments: BLIND
        dynamics.springs: TOUCHING
        emit.equations.polynomial: ROUNDING
        graph.counting: WORD
        graph.program: HUGE NEVER
        sim.actions: REJOINED
        sim.arguments: BESIDE
        sim.damped_newton: FAILED FIRST MOST RANK ROUNDS SOLVED
        sim.equilibrium: LOOSE
        sim.event_steps: TOGETHER
        sim.events: ROUNDS
        sim.failures: LEAST_SHARE STIFF
        sim.fast_modes: GROWN STEPS
        sim.fixed_steps: EARLY
        sim.implicit_forces: DECAYING_STEPS MOST_CONDITION MOST_RATE NOTICED RATES
        sim.loop_closure: BLURRED BOUND EASY GROWTH NEARLY PATIENCE TRIED WEAK
        sim.loop_state: COMMON GAP NEAR SINGULAR STILL
        sim.looped_dynamics: CREEPING FINAL LOOSE NEAR ROUGH SINGULAR SLOW TRUSTED
        sim.modes: RESTS ROUNDING
        sim.motions: SAME
        sim.partitions: CANDIDATES MOST_PARTITIONS NEGLIGIBLE
        sim.rest_search: KINK MOST_ROUNDS PRESSURE SIDES STRIDE TINY
        sim.step_check: CONFIRM EVENTS EVERY IMPACT LATE REGULAR REST SPIKE SPIKED SPIKES SPIKE_SHARE TWIN
        sim.step_check: WINDOW
        sim.stepsize: FAILED LEAST MOST
        sim.watched_steps: EARLY NEAR SMALLEST
    """,
    "the most that is accepted: what is larger is refused with a message, or warned of": """
        build.compiling: MOST_SYMBOLS
        build.graphs: MOST_OPERATIONS
        build.schedules: MOST_PROCESSORS
        build.stages: MOST_THREADS
        emit.cuda.gpu_kernel: LARGEST_STRIDE
        emit.equations.polynomial: TERMS WORK
        emit.equations.sheet: ENOUGH_TERMS
        graph.elimination: MOST_WRITTEN
        graph.recursion: MOST_WRITTEN WRITTEN
        graph.variations: MANY MOST
        sim.adjoint_gpu: ALL
        sim.amounts: FASTEST LONGEST_SECONDS MOST_COUNT MOST_SAMPLES MOST_STEPS MOST_STEPS_AT_ONCE
        sim.amounts: MOST_STEPS_OF_DATA
        sim.realtime: LONGEST_PERIOD LONGEST_SLEEP MOST_CAUGHT_UP OFTEN SELDOM
        sim.runner: MOST_TICKS
        sim.sampling: UNDER_WAY
        sim.settings: ROWS STEP TOLERANCE TRIES TRIES_A_SECOND
    """,
    "how long something takes or waits, and what is kept at hand": """
        build.forecast: PATIENCE
        build.graphs: RATE
        build.schedules: LAYING PATIENCE
        emit.cache: DAY DAYS HOUR MEGABYTES SETTLED
        emit.constants: LONGEST_TEXT
        emit.cores.pace: REPEATS STATES THROWS
        emit.cpu.costs: EVEN FARTHEST_USE REPEATS ROWS TINY
        emit.cpu.pool: PATIENCE
        emit.cpu.words: EVENTS TRACE
        graph.purity: LONGEST_CHECKED
        graph.recursion_span: AT_ONCE
        sim.adjoint: CHOICES
        sim.given_parts: ALL
        sim.gpu: KEPT PAUSE
        sim.linear: KEPT
        sim.runner: MACHINES PAUSE STARTING
        sim.tuning: REMEMBERED
    """,
    "what the hardware is like, and costs on it; every value is right": """
        dynamics.requests: COUPLED MARGIN QUICK WIDEST
        emit.cores.kernel: WORTH
        emit.cpu.ahead: ABREAST
        emit.cpu.column_code: STATES VECTORS
        emit.cpu.elimination_code: WIDE
        emit.cpu.lanes: LINE ROW
        emit.cpu.llvm: FEW NARROW TOGETHER
        emit.cpu.plan: TILE WINDOW
        emit.cpu.reach: PLACES WORTH
        emit.cpu.registers: SPARE
        emit.cpu.renewal: DEPTH PRICE
        emit.cpu.rolled_module: ABREAST
        emit.cpu.row_code: WIDEST
        emit.cpu.target: THREADS_WORTH
        emit.cuda.choice: BANDWIDTH CACHED FETCHED FILE LOCAL_COST OWN_VALUES PARKED REGISTERS SHARED
        emit.cuda.choice: SHARED_COST TEAMS_WORTH WARPS
        emit.cuda.device: LARGE TOO_LARGE
        emit.cuda.lane_text: LANES
        emit.cuda.loads: DISTANCE
        emit.cuda.prefetch: FEW PART PROCESSORS
        emit.cuda.settling: ROUNDS
        emit.cuda.state_kernel: LENT
        emit.cuda.supersteps: FETCHED
        emit.cuda.target: FEW_OPERATIONS
        emit.cuda.team: MEETING
        emit.cuda.units: SHARED_BY
        emit.cuda.wave_team: LANES MEMBERS
        emit.cuda.workspace: MOST
        emit.wasm.linking: PAGE
        graph.strip_units: WIDE
        sim.adjoint_gpu: FULL
        sim.tangents: WIDE
    """,
    "the longest pattern that is looked for; a small mechanism has no longer one": """
        dynamics.alike: LONGEST_PERIOD
        graph.strip_units: LONGEST_PERIOD
    """,
    "texts: how wide, how many": """
        build.kernels: LISTED
        emit.equations.language: WIDTH
        emit.equations.latex: ROOM
        emit.equations.sheet: LONGEST_ENTRY
        emit.equations.steps: INLINE_SYMBOLS
        graph.coverage: MOST_SHOWN
        graph.user_code: LONG
        sim.deadline_text: BAR
        sim.linear: WIDE
        sim.modes: NAMED SHARE
    """,
    "codes, places and sizes of formats and protocols": """
        build.places: SEEN TURNED
        emit.c.turns: FOUR
        emit.cores.protocol: ALONE LINE STEP TOGETHER
        emit.cores.streams: FLAG
        emit.cpu.rolled_loop: ANGLES
        emit.cpu.target: ALL_ROWS
        emit.cuda.looptext: START
        emit.cuda.waves: ROW
        emit.equations.polynomial: BITS
        emit.wasm.linking: DATA DATA_COUNT IMPORT
        graph.action: DRAWN GIVEN
        sim.chance: SEED WORD
        sim.element_passes: PLACED
        sim.outcome: UNRESOLVED
        sim.run: ALONE SHARE
        sim.urgency: CURRENT_ON_FAULT PRIORITY
    """,
}


def listed() -> set[str]:
    """Return the names of all of them: "module.CONSTANT"."""
    lines = [line.split(":") for text in NOT_LOWERED.values() for line in text.strip().splitlines()]
    return {f"{module.strip()}.{name}" for module, names in lines for name in names.split()}
