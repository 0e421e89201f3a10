"""Tests that take too long for `make test`, by what they are called: `make test-all` has them all.

For each there is a shorter one beside it that stays: fewer joints, another integrator, fewer examples.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

LONG = (
    "test_cockpit_page.py::test_the_camera_stays_*",  # minutes, where pictures are drawn without a GPU
    "test_simulation_driven.py::test_sensitivities_are_differences_of_runs[[][rm][oi]d*",  # rodas4, midpoint
    "test_simulation_driven.py::test_sensitivities_are_differences_of_runs[[]abm4]",
    "test_simulation.py::test_all_methods_give_the_same_run",
    "test_simulation.py::test_every_integrator_step_by_step_on_a_tree_with_quaternions[[]rodas4]",
    "test_docs.py::test_code_runs[[]parallel.md]",
    "test_docs.py::test_code_runs[[]nikravesh-7.md]",
    "test_docs.py::test_code_runs[[]saha-*.md]",
    "test_cli.py::test_tables_fit_the_terminal[[]count ARM --all-*0]",
    "test_looped_runs.py::test_absolute_coordinates_are_the_same_motion[[]*-slider_fourbar*",
    "test_looped_runs.py::test_all_forms_are_one_motion[[]delta]",
    "test_looped_failures.py::test_a_singularity_is_passed_with_its_energy_or_not_at_all[[]minimal-*-steps[1345]]",
    "test_looped_failures.py::test_chosen_steps_pass_it",
    "test_wong1991_excavator.py::test_at_one_centimetre_per_volt_the_papers_step_is_too_long",
    "test_fijany1989_schedules.py::test_the_arrays_use_the_methods_of_the_table",
    "test_fijany1989_schedules.py::test_with_finer_grain_composite_bodies_win_on_both",
    "test_cockpit.py::test_of_joints_in_loops_only_free_ones_are_moved[[]stewart*",
    "test_cockpit.py::test_of_joints_in_loops_only_free_ones_are_moved[[]delta*",
    "test_sliders.py::test_*[[]delta]",
    "test_sliders.py::test_*[[]stewart]",
    "test_cuda.py::test_a_plan_stays_within_the_multiprocessor[[]*-tree:63]",
    "test_cuda.py::test_a_team_assembles[[]float32]",
    "test_experiment_figures.py::test_there_is_a_page_with_all_plots_and_no_others[[]nikravesh-7]",
    "test_pinocchio_robots.py::test_robot_compiled[[]talos_data*-floating]",
    "test_pinocchio_robots.py::test_robot_compiled[[]anymal_b*-floating]",
    "test_pinocchio_motion.py::test_robot_compiled[[]anymal_b*-floating]",
    "test_threads.py::test_random_trees[[][23]-[234]]",
    "test_handover.py::test_every_order[[]3-1]",
    "test_forks.py::test_a_child_compiles_and_calls[[]properties]",
    "test_backends.py::test_quantity[[]*-float32]",
    "test_cuda_blocks.py::test_every_quantity[[]*-float32]",
    "test_looped_failures.py::test_a_singularity_is_passed_with_its_energy_or_not_at_all[[]minimal-*-steps0]",
    "test_looped_failures.py::test_a_singularity_that_cannot_be_passed[[]minimal]",
    "test_looped_runs.py::test_all_forms_are_one_motion[[]stewart]",
    "test_handover.py::test_every_order[[]2-2]",
    "test_full_sticks.py::test_held_for_ever[[]excavator_linkage-JOINT]",
    "test_sliders.py::test_left_alone[[]bricard]",
    "test_docs.py::test_code_runs[[]excavator.md]",
    "test_cuda.py::test_an_arm_has_one_thread_and_a_large_tree_a_team",
    "test_threads.py::test_large_functions_are_cut_too",
)


def is_long(node: str) -> bool:
    path, _, name = node.partition("::")
    return any(fnmatchcase(f"{path.rpartition('/')[2]}::{name}", pattern) for pattern in LONG)
