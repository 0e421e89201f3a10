"""Selection of the tests that take too long for `make test`; `make test-all` runs every test.

The selection follows from measured times (seconds.py). A family, one function with all its cases, may take one second,
or the time in ALLOWED. A case that takes half as long again is long, and an evenly spread subset of the other cases
stays. So there is no list to maintain; a new test without a measured time is in the fast suite unless LONG names it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import cache

from seconds import family, name_of, seconds

BUDGET = 1.0  # seconds of a family in make test
CASE = 1.5  # factor on the budget for a single case
# A larger budget for tests that have no shorter substitute.
ALLOWED = {
    "test_cold_files.py::test_a_cold_call_goes_through_few_files": 8.0,
    "test_rolled_quantities.py::test_rolled_quantities_agree_on_few_and_many_classes": 2.6,
    "test_graph_agreement.py::test_traced_quantities_agree_by_all_methods": 100.0,
    "test_graph_agreement.py::test_accelerations_of_a_traced_system_are_forward_dynamics": 80.0,
    "test_quality.py::test_mypy_strict": 120.0,
    "test_quality.py::test_functions_are_simple": 4.0,
    "test_cache.py::test_constants_are_as_their_files_have_them": 4.0,
    "test_study_identity.py::test_change_of_a_study_input_is_rejected": 6.0,
    "test_public_api.py::test_a_type_checker_understands_a_users_file": 8.0,
    "test_docs.py::test_code_runs": 18.0,
    "test_layers.py::test_third_parties_are_the_core_dependencies": 4.0,
    "test_layers.py::test_imports_point_down": 4.0,
    "test_pinocchio_robots.py::test_robot": 3.5,
    "test_pinocchio_motion.py::test_robot": 3.5,
    "test_pinocchio_robots.py::test_robot_compiled": 5.0,
    "test_mjcf_files.py::test_accelerations": 4.0,
    "test_mjcf_report.py::test_unsupported_attribute_is_reported": 4.0,
    "test_pinocchio_order.py::test_states_convert_between_orders": 2.0,
    "test_quadruped.py::test_quadruped_trots": 4.0,
    "test_read_robots.py::test_each_file_loads_or_raises": 8.0,
    "test_fuzz_files.py::test_damaged_files": 6.0,
    "test_names.py::test_hostile_names_stay_in_their_place": 5.0,
    "test_cuda_blocks.py::test_every_quantity": 4.0,
    "test_cuda_blocks.py::test_any_tree": 4.0,
    "test_backends.py::test_random_graphs": 9.0,
    "test_export_c.py::test_excavators_with_hydraulics_and_control": 8.0,
    "test_export_casadi.py::test_values_and_derivatives": 4.0,
    "test_forks.py::test_a_child_compiles_and_calls": 5.0,
    "test_compiled_code.py::test_machine_code_equals_evaluate": 6.0,
    "test_cockpit.py::test_only_independent_joints_in_loops_have_levers": 9.0,
    "test_ground.py::test_the_volume_is_constant_while_the_autopilot_digs": 9.0,
    "test_ground.py::test_a_full_bucket_is_heavy_and_a_hard_cut_stalls_the_arm": 6.0,
    "test_cockpit_ground.py::test_the_autopilot_digs_ground_every_time": 4.0,
    "test_linearize.py::test_loops_linearise_to_differences_of_closed_states": 6.0,
    "test_run_forces.py::test_reactions_of_a_record_carry_every_body": 4.0,
    "test_rope.py::test_rope_comes_to_rest_as_a_hanging_polygon": 3.0,
    "test_wrong_calls.py::test_a_few": 4.0,
    "test_validation_loops.py::test_n_four_bars": 7.0,
    "test_cockpit_page.py::test_new_user_digs_a_hole": 40.0,
    "test_cockpit_page.py::test_page_draws_a_moving_machine": 15.0,
    "test_cockpit_page.py::test_only_clients_with_the_token_are_admitted": 12.0,
    "test_cockpit_page.py::test_keys_move_the_sticks_and_the_machine": 8.0,
    "test_cockpit_page.py::test_dead_man": 8.0,
    "test_cockpit_page.py::test_sliders": 6.0,
    "test_cockpit_page.py::test_falling_mechanism_stays_in_the_picture": 6.0,
    "test_cockpit_page.py::test_names_never_become_markup": 6.0,
    "test_cockpit_extras.py::test_keys_theme_sound_and_steps": 12.0,
    "test_cockpit_layout.py::test_elements_do_not_overlap": 25.0,
    "test_static_page.py::test_a_visitor_drives": 10.0,
    "test_study_page_live.py::test_page_draws_selects_and_replays": 8.0,
    "test_schedule_page_live.py::test_everything_is_drawn": 5.0,
    "test_schedule_page_live.py::test_the_critical_path_is_drawn_along_its_channels": 5.0,
    "test_schedule_page_live.py::test_light_and_dark": 4.0,
    "test_record_page_live.py::test_a_large_mechanism": 4.0,
}
# Tests without a measured time that are surely long, by name; a star stands for the cases.
LONG = (
    "test_methods.py::test_estimated_work_of_derivatives_is_near_the_count[[]10]",
    "test_experiment_numbers.py::test_experiment_numbers[[]fijany1989]",
    "test_experiment_numbers.py::test_experiment_numbers[[]nikravesh-7]",
    "test_experiment_numbers.py::test_experiment_numbers[[]wong_feasible]",
    "test_experiment_figures.py::test_plots_are_current[[]saha-smoothness]",
    "test_docs.py::test_code_runs[[]counting.md]",
    "test_saha2001_runs.py::test_smooth_accelerations_take_the_same_steps_by_every_method",
    "test_experiment_numbers.py::*saha-smoothness]",
    "test_bearing_friction.py::test_friction_and_reactions_of_a_tree_agree[[][023]*",
    "test_bearing_friction.py::test_slider_crank_is_the_dense_solution_for_every_cut_joint[[][CD]*",
    "test_bearing_friction.py::test_derivatives_are_differences[[]5*",
    "test_latches.py::test_free_bodies_join_with_their_momentum_and_move_as_one*",
    "test_latches.py::test_closed_loop_that_takes_a_part_moves_as_with_a_weld[[]projected*",
    "test_latches.py::test_commands_switch_runs_lanes_and_steppers_at_the_same_steps[[]rk4*",
    "test_looped_failures.py::test_random_starts_keep_their_energy_*",
    "test_plugins.py::test_a_change_of_any_file_of_a_package_is_seen*",
    "test_export_stack.py::test_large_machines*",
    "test_contact.py::test_study_of_starts_refuses_only_those_inside_the_floor[[]heights[12]*",
    "test_implicit_forces.py::*[[]rkf45*",
    "test_implicit_forces.py::*[[]dopri5*",
    "test_implicit_forces.py::*[[]abm4*",
    "test_implicit_forces.py::*-lagrange]",
    "test_implicit_forces.py::test_a_block_on_a_slope[[]euler*-minimal]",
    "test_implicit_forces.py::test_random_*[[][2-9]*",
    "test_quadruped.py::*comes_to_rest_at_the_default_step[[]*-bristles]",
    "test_quadruped.py::*comes_to_rest_at_the_default_step[[]*-rk4-*]",
    "test_quadruped.py::*comes_to_rest_at_the_default_step[[]a1-*",
    "test_quadruped.py::*comes_to_rest_at_the_default_step[[]anymal-*",
    "test_quadruped.py::*trots_as_in_short_ones[[]rk4]",
    "test_pairs.py::test_systems[[]*[1-9]]",
    "test_pairs.py::test_quantities[[]*[1-9]]",
    "test_pairs.py::test_systems[[][124578]0]",
    "test_pairs.py::test_quantities[[][124578]0]",
    "test_random_combinations.py::*",
    "test_sizes.py::test_chains[[]6[35]-*",
    "test_sizes.py::test_chains[[]64-[!f]*",
    "test_rolled_shares.py::test_random_trees_of_bodies_that_bend*",
    "test_rolled_shares.py::test_machine_code_and_derivatives_agree[[]beams]",
    "test_recursion_tangent.py::test_sensitivities_of_implicit_steps_of_many_bodies",
    "test_element_passes.py::test_a_run_of_many_keeps_momentum_and_energy",
    "test_place_schedules.py::test_large_ones_are_laid_out_without_being_written",
    "test_elimination.py::test_further_states_inputs_and_free_numbers[[]rodas4]",
    "test_c_loops.py::test_implicit_steps_of_a_long_chain_are_those_here",
    "test_machine_pages_live.py::test_an_excavator_its_hole_and_its_heap",
    "test_executed_schedules.py::*",
    "test_experiment_numbers.py::test_experiment_numbers[[]executed]",
    "test_scheduled_threads.py::test_the_machines_of_the_papers[[]wong-explicit]",
    "test_scheduled_threads.py::test_the_machines_of_the_papers[[]fijany]",
    "test_scheduled_threads.py::test_kernel_of_a_schedule_with_loops_and_free_parameters",
    "test_export_schedule.py::test_threads_have_no_races[[]on_t*",
    "test_rolling.py::*[[]*projected*",
    "test_elements.py::test_action_is_reaction_and_runs_balance[[]smooth]",
    "test_elements.py::test_runs_of_couplings_balance[[]crossed]",
    "test_docs.py::test_code_runs[[]press.md]",
    "test_fit_excavator.py::*",
    "test_identify.py::test_a_panda_from_noisy_torques",
    "test_regressors.py::test_a_delta_has_the_parameters_of_its_branch",
    "test_study_kills.py::*",
    "test_cockpit_page.py::test_beams_bend*",
    "test_flexible_motion.py::test_motion_quantities_are_compiled",
    "test_exudyn.py::*",
    "test_zoo_loops.py::*[[]excavator_flexible]",
    "test_counter_rng.py::test_the_battery[[]runs, *",
    "test_counter_rng.py::test_the_battery[[][sf]*",
    "test_flexible_excavator.py::test_flexible_excavator_digs_as_the_rigid_one",
    "test_flexible_excavator.py::test_sag_needs_few_modes",
    "test_export_*.py::*[[]excavator_flexible]",
    "test_ground.py::test_the_volume_is_constant_while_the_autopilot_digs[[]linkage_hour-*",
    "test_ground.py::test_the_volume_is_constant_while_the_autopilot_digs[[]rotary-*",
    "test_flexible.py::test_quantities_belong_together[[]floating]",
    "test_flexible.py::test_all_methods_are_one[[]floating-mass_matrix]",
    "test_cockpit_page.py::test_the_camera_stays_*",
    "test_driven_simulations.py::test_sensitivities_are_differences_of_runs[[][rm][oi]d*",
    "test_driven_simulations.py::test_sensitivities_are_differences_of_runs[[]abm4]",
    "test_simulation.py::test_all_methods_give_the_same_run",
    "test_simulation.py::test_every_integrator_step_by_step_on_a_tree_with_quaternions[[]rodas4]",
    "test_docs.py::test_code_runs[[]parallel.md]",
    "test_site.py::test_the_site_*",
    "test_docs.py::test_code_runs[[]nikravesh-7.md]",
    "test_nikravesh1989_recursion.py::test_table_has_the_four_panels_and_the_published_breakpoints",
    "test_nikravesh1989_runs.py::test_sparse_absolute_coordinates_are_the_same_equations_with_fewer_operations",
    "test_docs.py::test_code_runs[[]saha-*.md]",
    "test_wong1991_excavator.py::test_at_one_centimetre_per_volt_the_papers_step_is_too_long",
    "test_wong1991_rivals.py::test_crossovers_with*",
    "test_fijany1989_layouts.py::test_messages_grow_with_the_logarithm_on_the_shuffle_network_only",
    "test_wong1991_rivals.py::test_time_of_fijany_grows_by_a_constant_for_each_doubling",
    "test_experiment_numbers.py::test_experiment_numbers[[]wong_rivals]",
    "test_experiment_numbers.py::test_experiment_numbers[[]fijany_arrays]",
    "test_schedule_search.py::test_result_is_not_longer_than_that_of_the_fewest_operations",
    "test_fijany1989_schedules.py::test_the_arrays_use_the_methods_of_the_table",
    "test_fijany1989_schedules.py::test_with_finer_grain_composite_bodies_win_on_both",
    "test_sliders.py::test_*[[]delta]",
    "test_sliders.py::test_slider_of_a_joint_outside_the_loops_keeps_its_range",
    "test_sliders.py::test_*[[]space_manipulator]",
    "test_wong1991_further.py::test_closed_chains[[][abdfnr]*",
    "test_sliders.py::test_*[[]walking_excavator]",
    "test_sliders.py::test_*[[]stewart]",
    "test_sliders.py::test_all_at_once_and_back[[]excavator_linkage]",
    "test_sliders.py::test_all_at_once_and_back[[]puma600]",
    "test_cuda.py::test_a_plan_stays_within_the_multiprocessor[[]*-tree:63]",
    "test_cuda.py::test_a_team_assembles[[]float32]",
    "test_experiment_figures.py::test_there_is_a_page_with_all_plots_and_no_others[[]nikravesh-7]",
    "test_pinocchio_robots.py::test_robot_compiled[[]talos_data*-floating]",
    "test_pinocchio_robots.py::test_derivatives_in_loops_over_columns*",
    "test_pinocchio_robots.py::test_robot_compiled[[]anymal_b*-floating]",
    "test_pinocchio_motion.py::test_robot_compiled[[]anymal_b*-floating]",
    "test_threads.py::test_random_trees[[][23]-[234]]",
    "test_handover.py::test_every_order[[]3-1]",
    "test_forks.py::test_a_child_compiles_and_calls[[]properties]",
    "test_backends.py::test_quantity[[]*-float32]",
    "test_cuda_blocks.py::test_every_quantity[[]*-float32]",
    "test_handover.py::test_every_order[[]2-2]",
    "test_handover.py::test_every_order_in_which_stores_are_seen*",
    "test_handover.py::test_early_store_is_detected*",
    "test_sliders.py::test_machine_rests_without_input[[]bricard]",
    "test_docs.py::test_code_runs[[]excavator.md]",
    "test_cuda_blocks.py::test_graph_that_fits_a_thread_is_one_part",
    "test_cuda.py::test_an_arm_has_one_thread_and_a_large_tree_a_team",
    "test_threads.py::test_large_functions_are_cut_too",
    "test_backends.py::test_quantity[[]*_derivatives-*",
    "test_backends.py::test_quantity[[]multipliers-*",
    "test_backends.py::test_quantity[[]loop_forces-*",
    "test_backends.py::test_quantity[[]reactions-*",
    "test_cuda_blocks.py::test_every_quantity[[]stanford-multipliers-*",
    "test_export_validation.py::*",
    "test_export_platforms.py::test_first_export_*",
    "test_export_exchange.py::test_excavators_*",
    "test_export_fmu.py::test_a_second_*",
    "test_partitions.py::test_some_partition_*[[][rb]*",
    "test_nominals.py::test_a_mode_*",
    "test_export_wasm.py::test_excavators[[]excavator_linkage]",
    "test_cross_compile.py::test_whole_runs_equal_native_ones[[]excavator_linkage-*",
    "test_cross_compile.py::test_whole_runs_equal_native_ones[[]excavator-riscv64]",
    "test_static_page.py::test_the_linkage_runs_at_its_rate_*",
    "test_export_fmu.py::test_zoo[[][a-eg-su-z]*",
    "test_linearize.py::test_tree_linearisation_equals_the_complex_step",
    "test_linearize.py::test_many_points_are_the_same_as_one_by_one",
    "test_equilibrium.py::test_the_hydraulic_excavator_rests_on_its_oil",
    "test_export_fmu.py::test_zoo[[]four_bar-?]",
    "test_export_fmu.py::test_zoo[[]torso-3]",
    "test_export_fmu.py::test_zoo[[]tree-2]",
    "test_elements_on_targets.py::test_fmus*",
    "test_cockpit_extras.py::test_plots_show_values_under_the_pointer",
    "test_tracks.py::test_machine_*",
    "test_tracks.py::test_heavy_load_*",
    "test_tracks.py::test_hard_cut_*",
    "test_tracks.py::test_soil_leaves_*",
    "test_ground.py::test_complete_period_is_short",
    "test_tracks.py::test_the_gauge_*",
    "test_export_wasm.py::test_excavators[[]excavator_tracked]",
    "test_elements_on_targets.py::test_derivatives[[][bc]*",
    "test_elements_on_targets.py::test_c[[]between]",
    "test_flexible.py::test_quantities_belong_together*",
    "test_pinocchio_motion.py::test_robot_compiled*",
    "test_rolling.py::test_a_ball_on_a_slope*",
    "test_static_page.py::test_an_address_digs_and_is_rewound",
    "test_segmented_recursion.py::test_results_do_not_depend_on_the_segments[[][bgm]*",
    "test_segmented_recursion.py::test_kernels_in_lanes[[]bushy]",
    "test_segmented_recursion.py::test_two_cores_share_a_state",
    "test_dca.py::test_long_chains[[][ap]*",
    "test_large_loops.py::test_a_step_takes_work_that_grows_with_the_bodies[[]track]",
    "test_c_loops.py::test_recursions_agree[[]random]",
    "test_cli.py::test_bench_predicts_and_times_a_step[[]pendulum]",
    "test_growing_record.py::*[[]SIGHUP]",
    "test_fit.py::test_numbers_of_any_size_*[[]1e-300-output]",
    "test_fit.py::test_numbers_of_any_size_*[[]5e-324-output]",
    "test_fit.py::test_numbers_of_any_size_*[[]1e+49-output]",
    "test_growing_record.py::test_a_killed_process_*[[]SIGTERM]",
    "test_path_thresholds.py::test_*_around_the_real_thresholds*",
    "test_path_thresholds.py::test_small_mechanisms_on_the_paths_of_large_ones[[]9-*",
    "test_path_thresholds.py::test_small_mechanisms_on_the_paths_of_large_ones[[]6-[mo]*",
    "test_path_thresholds.py::test_small_mechanisms_rest_on_the_paths_of_large_ones[[][mo]*",
    "test_path_thresholds.py::test_small_mechanisms_rest_on_the_paths_of_large_ones[[]loops]",
    "test_several_outputs.py::test_on_*[[]springs*",
    "test_page_convergence.py::test_with_half_the_step_a_page_prints_the_same[[][!qv]*",
    "test_step_check.py::test_a_run_that_ends_does_not_change_with_half_the_step",
    "test_summaries.py::test_every_column_of_a_record_can_be_summarised[[]box]",
    "test_loop_rank.py::test_a_scissor_lift_has_one_freedom[[][2-5][05]-*",
    "test_loop_rank.py::test_a_lift_by_its_one_equation[[][25]0-*",
    "test_loop_rank.py::test_*[[]lifts*",
    "test_loop_rank.py::test_accelerations[[]all]",
    "test_loop_rank.py::test_accelerations_of_towers[[]lift]",
    "test_loop_rank.py::test_towers_of_all_sizes*-lift]",
    "test_loop_rank.py::test_linearize[[]20-*",
    "test_loop_rank.py::test_runs_keep_loops_and_energy*",
    "test_loop_rank.py::test_a_run_of_all_sizes_at_once[[]projected]",
    "test_loop_rank.py::test_a_run_of_all_sizes_at_once[[]lagrange]",
    "test_wong1991_simulator.py::test_tables",
)


def long_among(nodes: Sequence[str]) -> set[str]:
    """Return the tests that only `make test-all` runs; a test that is requested alone always runs."""
    families: dict[str, list[str]] = {}
    for node in nodes:
        families.setdefault(family(name_of(node)), []).append(node)
    return {node for of, cases in families.items() for node in set(cases) - set(_staying(of, cases))}


def _staying(of: str, cases: Sequence[str]) -> Sequence[str]:
    """Return the cases of a family that fit its budget, from the first to the last."""
    budget = ALLOWED.get(of, BUDGET)
    short = [node for node in cases if seconds(name_of(node)) <= CASE * budget and not is_long(node)]
    total = sum(seconds(name_of(node)) for node in short)
    if total <= budget:
        return short
    stay = max(1, int(len(short) * budget / total))
    return [short[i * len(short) // stay] for i in range(stay)]


def is_long(node: str) -> bool:
    """Return whether LONG names the test."""
    name = name_of(node)
    return any(p.match(name) for p in (*_patterns().get(name.partition("::")[0], ()), *_patterns()[""]))


@cache
def _patterns() -> dict[str, list[re.Pattern[str]]]:
    """Return the patterns by file, those for several files under "".

    They are compiled once, because there are many patterns and thousands of tests.
    """
    found: dict[str, list[re.Pattern[str]]] = {"": []}
    for pattern in LONG:
        file = pattern.partition("::")[0]
        found.setdefault("" if "*" in file else file, []).append(re.compile(translate(pattern)))
    return found
