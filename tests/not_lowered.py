"""Constants that decide something but are no thresholds between the code paths of small and large mechanisms.

Each stands under the reason. A new constant that does select other code belongs into TABLE of lowered.py instead.
"""

from __future__ import annotations

NOT_LOWERED: dict[str, str] = {
    "how exact something is: tolerances, rounding, condition numbers, sizes from which on something counts": """
        dynamics.historical.angeles: NEGLIGIBLE_MOMENT_RATIO SMALL_PIVOT_RATIO
        build.rounding_doubts: ERROR_FACTOR
        dynamics.tree_accuracy: CLEARLY_ACCURATE MAX_RELATIVE_ERROR MEASURED_STATES NEGLIGIBLE_RELATIVE_ERROR
        dynamics.tree_accuracy: PREPARED_DISTURBANCES ROUNDING_UNIT SAFE_CARRIED_RATIO SAFE_SPREAD SAMPLES
        dynamics.singular_mass: MOVING_SHARE NEGLIGIBLE_DIAGONAL
        sim.program.step_limits: COINCIDENT_POINTS_M
        sim.system.prescribed_motions: INTEGRATION_ERROR_MARGIN REPLAYED_SECONDS
        dynamics.singular_mass: CLEAR_PIVOT_RATIO HEAVY_EIGENVALUE SINGULAR_EIGENVALUE
        dynamics.loops.acceleration_accuracy: COMPARABLE_ROW_RATIO CONVERGED EPSILON ERROR_TOLERANCE_FACTOR
        dynamics.loops.acceleration_accuracy: MAX_RELATIVE_ERROR REFINEMENT_GOAL SAFE_CONDITION SAFE_CONTRADICTION
        dynamics.loops.acceleration_accuracy: SAFE_LOSS COMMON_PIVOT EXAMINED_CONFIGURATIONS MOST_REFINEMENTS
        dynamics.loops.acceleration_accuracy: WANTED_MULTIPLIER_ERROR LOSS_MARGIN
        dynamics.loops.assembly: RESIDUAL_GOAL CLOSED_RESIDUAL EXACT_RESIDUAL LONGEST_STEP MOST_STEPS OPEN_FACTOR
        dynamics.loops.assembly: ROUGH_TOLERANCE MAX_ITERATIONS SHORTEST_STEP SLOW_PROGRESS_RATIO STRIDE
        dynamics.loops.equation_analysis: DOUBTFUL_WALKERS EXACT_NOISE FAR_STEPS FAR_WALKERS HOLDING_FACTOR
        dynamics.loops.equation_analysis: MAX_TRIED_NUMBERS MAX_TIE_TOLERANCE MAX_TRIES NEGLIGIBLE_ROW REPORTED_GAP
        dynamics.loops.equation_analysis: PATTERN_TOLERANCE SLACK_MARGIN STEPS TIE_TOLERANCE WALKERS
        dynamics.loops.loop_requests: NEAR_BRANCH
        dynamics.loops.loop_layer: LEAST_CONDITIONING
        dynamics.loops.coordinate_partitioning: MAX_ELIMINATION_FACTOR PIVOT_SIZE_RATIO
        dynamics.loops.constraint_values: NEGLIGIBLE_RATIO ROUNDING_ELEMENT
        dynamics.loops.constraint_values: RANK_CEILING CLEAR_GAP_RATIO SMALLEST_DIVISOR
        dynamics.segments: ZERO_PIVOT_RATIO
        dynamics.frame_pairs: MIN_DISTANCE_SQUARED
        emit.equations.polynomial: ROUNDING_TOLERANCE
        graph.layout: WORD_RANGE
        graph.program: STATE_LIMIT NEVER_TIME
        sim.stepper.stepper_actions: START_CLOSURE_ROUNDS
        sim.run_arguments: LIMIT_TOLERANCE
        sim.linear.equilibrium: FAILED_RESIDUAL FIRST_DAMPING MAX_DAMPING RANK_TOLERANCE MAX_ITERATIONS
        sim.linear.equilibrium: SOLVED_RESIDUAL
        sim.linear.equilibrium: UNDETERMINED_SHARE
        sim.program.events: SIMULTANEOUS_STEPS
        sim.program.events: SEARCH_ITERATIONS
        sim.run.record_builder: MIN_STEP_SHARE STIFF_STEP_RATE
        sim.program.step_limits: UNSTABLE_AMPLITUDE TEST_STEPS
        sim.program.fixed_steps: EARLY_STEPS
        sim.program.implicit_forces: DECAYING_STEPS MAX_MASS_CONDITION MAX_TESTED_RATE EXPLICIT_SHARE TESTED_RATES
        sim.constraints.loop_closure: ROW_RANK_TOLERANCE MAX_E SUFFICIENT_E MAX_E_GROWTH SUFFICIENT_E_RATIO
        sim.constraints.loop_closure: CLOSURE_ATTEMPTS SAMPLED_STATES WEAK_PIVOT
        sim.constraints.loop_closure: USUAL_SINGULAR_VALUE MAX_START_GAP NEAR_SINGULAR_RATIO SINGULAR_RATIO MIN_INERTIA
        sim.constraints.looped_dynamics: MIN_DISTANCE_ADAPTIVE FINAL_ITERATIONS LAGRANGE_GAP NEAR_DISTANCE
        sim.constraints.looped_dynamics: MAX_STAGE_DIFFERENCE MIN_DISTANCE_FIXED MIN_CHECKED_SPEED MIN_DISTANCE_ROW
        sim.linear.modes: REST_ACCELERATION ROUNDING_RATIO
        sim.system.prescribed_motions: MAX_MOTION_ERROR_SHARE MIN_FREE_SHARE START_TOLERANCE
        sim.constraints.multi_partition_program: LARGEST_CANDIDATE_COUNT LARGEST_PARTITION_COUNT NEGLIGIBLE_SHARE
        sim.linear.equilibrium: KINK_STEP MOST_ITERATIONS PRESSURE_SCALE_PA MOST_KINK_RESTARTS
        sim.linear.equilibrium: LONGEST_JOINT_STEP SMALLEST_SCALE
        sim.program.step_check: CONFIRM_STEPS EVENTS CHECK_INTERVAL_STEPS IMPACT_STEPS LATE_STEPS REGULAR
        sim.program.step_check: LONGEST_WAIT_STEPS REFERENCE SINGLE_STEP_SHARE SPIKE_RATIO SPIKED SPIKE_BUDGET
        sim.program.step_check: SPIKE_SHARE WINDOW_STEPS
        sim.program.adaptive_steps: FAILURE_RATIO LEAST_RATIO MOST_RATIO
        sim.program.adaptive_steps: EARLY_SHARE GRID_ROUNDING SMALLEST_STEP_RATIO
    """,
    "the most that is accepted: what is larger is refused with a message, or warned of": """
        build.function_compilation: MAX_SYMBOLS
        build.graphs: MAX_OPERATIONS
        build.schedules: MAX_DEFAULT_PROCESSORS
        build.compilation: MAX_THREADS
        emit.cuda.gpu_kernel: MAX_STRIDE_ELEMENTS
        emit.equations.polynomial: MAX_TERMS MAX_PRODUCT_WORK
        emit.equations.sheet: GROUPING_TERMS
        graph.loop_graph: MAX_WRITTEN_OPERATIONS BYTES_PER_OPERATION
        graph.autodiff: SLOW_VJP_OPERATIONS MAX_VARIATION_NUMBERS
        sim.run.adjoint_sweeps: UNLIMITED_TICKS
        sim.run_arguments: MAX_RATE_HZ MAX_SECONDS MAX_COUNT MAX_SAMPLES MAX_STEPS MAX_STEPS_PER_CALL
        sim.run_arguments: MAX_EXPERIMENT_STEPS
        sim.realtime.realtime_drive: LONGEST_PERIOD_NS LONGEST_SLEEP_S MOST_CAUGHT_UP_PERIODS HIGHEST_RATE_HZ
        sim.realtime.realtime_drive: LOWEST_RATE_HZ
        sim.run.lane_blocks: MOST_TICKS
        sim.system.sampling: MOST_DELAYED_SAMPLES
        sim.settings: DEFAULT_ROWS DEFAULT_STEP_S DEFAULT_TOLERANCE MOST_TRIES MOST_TRIES_PER_SECOND
    """,
    "how much of a batch or a run is examined for a warning or a refusal": """
        dynamics.singular_mass: MATRIX_NUMBERS
        sim.run.record_builder: CHECKED_RUNS
        sim.system.element_forces: OVERLAP_CHECK_ROWS CHECKED_RUNS
        sim.stepper.stepper: OVERLAP_CHECK_ACTIONS
        sim.system.prescribed_motions: MOST_REPLAYED_STEPS
    """,
    "how long something takes or waits, and what is kept at hand": """
        build.compile_time_forecast: WARNING_SECONDS
        build.graphs: OPERATIONS_PER_SECOND
        build.schedules: OPERATION_SECONDS WARNING_SECONDS
        dynamics.loops.acceleration_accuracy: LARGE_PROBLEM_ELEMENTS MEASURED_STATES
        emit.cache: DAY_SECONDS DEFAULT_DAYS HOUR_SECONDS DEFAULT_MEGABYTES SETTLING_TIME_NS
        emit.constant_changes: LONGEST_TEXT_CHARACTERS
        emit.cores.calibration: REPEATS STATES_PER_MEASUREMENT PING_PONG_MESSAGES
        emit.cpu.costs: EVEN_TIME_RATIO FARTHEST_USE_OPERATIONS CALIBRATION_REPEATS CALIBRATION_ROWS TINY_OPERATIONS
        emit.cpu.costs: CHAIN_OPERATIONS DEFAULT_LATENCY_CYCLES
        emit.cpu.thread_pool: POLL_INTERVAL_SECONDS
        emit.cpu.realtime_loop: KEPT_EVENTS KEPT_PERIODS
        graph.user_code: MAX_CHECKED_SECONDS
        graph.recursion_interpreter: MAX_STEP_NUMBERS
        sim.run.adjoint: MAX_PARTITIONS
        sim.system.systems: MAX_CHECKED_RUNS
        sim.run.gpu_runs: MEMORY_SHARE PAUSE_SECONDS
        sim.linear.linearisation: CACHED_PLANTS
        sim.run.lane_blocks: MOST_CACHED_LIBRARIES PROGRESS_INTERVAL_S THREAD_START_S
        sim.realtime.realtime_memory: MOST_CHANGES
    """,
    "what the hardware is like, and costs on it; every value is right": """
        build.policy: FAR_TOO_LONG_RATIO MAX_BODY_NUMBERS
        dynamics.method_table: COUPLED_MARGIN ESTIMATE_MARGIN QUICK_TRACE_OPERATIONS
        emit.cores.target: MIN_SPEEDUP
        emit.llvm.calls: INTERLEAVED_ANGLES
        emit.llvm.column_code: PARALLEL_COLUMNS PARALLEL_VECTORS
        emit.llvm.loop_code: TURNS_AT_ONCE
        emit.llvm.lanes: CACHE_LINE_BYTES PREFETCHED_ROW_BYTES
        emit.cpu.kernel_module: MATRIX_WINDOW_NODES PIPELINED_WINDOW_NODES
        emit.cpu.module_functions: GROUP_BLOCKS
        emit.llvm.scheduling: TILE_COLUMNS WINDOW_NODES
        emit.llvm.register_allocation: MAX_BASE_POINTERS MIN_NEAR_ADDRESSES
        emit.llvm.register_allocation: TEMPORARY_REGISTERS
        emit.llvm.rematerialisation: MAX_OPERAND_LEVELS MAX_PRICE_OPERATIONS
        emit.cpu.recursion_module: PARALLEL_SUMS
        emit.llvm.transpose_store: MAX_STORE_BYTES
        emit.cpu.target: THREAD_WORK_SECONDS
        emit.cuda.occupancy: BANDWIDTH CACHED_INSTRUCTIONS UNCACHED_INSTRUCTIONS_PER_SECOND REGISTER_FILE_SIZE
        emit.cuda.occupancy: LOCAL_COST OVERHEAD_VALUES SPILL_OVERHEAD_SHARE MAX_REGISTERS SHARED_BYTES SHARED_COST
        emit.cuda.occupancy: TEAM_STALL_FACTOR MAX_WARPS
        emit.cuda.device: PINNED_BYTES MAX_PINNED_BYTES
        emit.cuda.lane_code: LANES
        emit.cuda.register_pressure: HOIST_DISTANCE_UNITS
        emit.cuda.array_access: MAX_PREFETCH_WARPS WAVE_FRACTION MULTIPROCESSORS
        emit.cuda.register_pressure: MAX_ROUNDS
        emit.cuda.rolled_kernels: LENT_MEMORY_SHARE
        emit.cuda.wave_team: LOCALITY_WEIGHT
        emit.cuda.target: MAX_UNROLLED_OPERATIONS
        emit.cuda.team: BARRIER_COST
        emit.cuda.thread_code: MAX_FUSED_SUMS
        emit.cuda.wave_team: LANES MEMBERS
        emit.cuda.rolled_kernels: MAX_RESIDENT_BLOCKS
        emit.wasm: PAGE_BYTES
        graph.loop_grouping: SINCOS_LANES
        sim.run.adjoint_sweeps: BUSY_RUNS
        sim.linear.operating_point: GPU_CHUNK_NUMBERS
    """,
    "the longest pattern that is looked for; a small mechanism has no longer one": """
        dynamics.recursion.link_classes: LONGEST_PERIOD_BODIES
        graph.loop_grouping: MAX_INTERLEAVE_PERIOD
    """,
    "texts: how wide, how many": """
        build.kernels: MAX_LISTED_NAMES
        dynamics.loops.equation_analysis: LISTED_LOOPS
        dynamics.quantities: HELP_WIDTH
        emit.equations.language: LINE_WIDTH
        emit.equations.latex: ROW_WIDTH
        emit.equations.sheet: MAX_ENTRY_TERMS
        emit.equations.sheet: MAX_INLINE_SYMBOLS
        graph.graph: MAX_LISTED_ELEMENTS
        graph.user_code: MAX_LINE_CHARACTERS
        sim.realtime.deadlines: BAR_CHARACTERS
        sim.linear.linearisation: MAX_PRINTED_COLUMNS
        sim.linear.modes: MOST_NAMED_JOINTS NAMED_AMPLITUDE_RATIO
    """,
    "codes, places and sizes of formats and protocols": """
        build.recursion_layout: MOTION_RESULTS MOTION_AND_AXES_RESULTS
        emit.c.sincos_text: GROUP_SIZE
        emit.cores.handover_worker: ALONE_OFFSET LINE_BYTES STEP_LINE TOGETHER_OFFSET
        emit.cores.streams: FLAG_OFFSET
        graph.cells: ANGLES_CHANNEL
        emit.cpu.target: UNLIMITED_ROWS
        emit.cuda.run_kernel_code: START_TICKS
        emit.cuda.waves: PLAN_COLUMNS
        emit.equations.polynomial: EXPONENT_BITS
        emit.wasm: DATA DATA_COUNT IMPORT
        graph.program: DRAWN GIVEN
        sim.program.counter_rng: SEED_NUMBERS WORD_RANGE
        sim.system.element_forces: FRAME_NUMBERS
        sim.run.record_builder: UNRESOLVED
        sim.run.batch_execution: OWN_REFERENCES PARTS_PER_THREAD
        sim.realtime.realtime_memory: MLOCKALL_FLAGS THREAD_PRIORITY
    """,
}


def listed() -> set[str]:
    """Return the names of all of them: "module.CONSTANT"."""
    lines = [line.split(":") for text in NOT_LOWERED.values() for line in text.strip().splitlines()]
    return {f"{module.strip()}.{name}" for module, names in lines for name in names.split()}
