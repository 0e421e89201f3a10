"""Operation counts of every method, to skip slow methods without tracing them.

The numbers are the traced counts of a general chain: the saving at its two ends, and operations by coordinate, by pair
and by triple of coordinates along a path to the ground. A test keeps them current (BELLCRANK_UPDATE=1 writes them).
"""

from __future__ import annotations

Rates = tuple[float, float, float, float]
WORK: dict[str, dict[str, Rates]] = {
    "forward_dynamics": {
        "crba": (-332.0, 152.0, 36.0, 1.0),
        "aba": (-673.0, 396.0, 0.0, 0.0),
        "dca": (-6915.42, 2365.58, 0.0, 0.0),
        "ness": (-155.0, 19.0, 70.0, 7.0),
        "hemami": (-382.0, 154.0, 82.0, 7.0),
        "angeles": (-229.0, 85.0, 53.0, 7.0),
        "walker_orin": (-434.0, 232.0, 36.0, 1.0),
        "featherstone": (-750.0, 489.0, 0.0, 0.0),
        "denoc": (-732.0, 413.0, 0.0, 0.0),
        "joint_coordinates": (-227.0, 124.0, 77.0, 7.0),
        "joint_coordinates_recursive": (-820.0, 582.0, 0.0, 0.0),
        "absolute": (-1037.0, 1242.0, 0.0, 0.0),
        "newton_euler_symbolic": (-274.0, 186.0, 46.0, 7.0),
    },
    "inverse_dynamics": {
        "rnea": (-230.0, 157.0, 0.0, 0.0),
    },
    "forward_dynamics_derivatives": {
        "derivatives": (2962.74, -1080.63, 411.8, 0.0),
    },
    "inverse_dynamics_derivatives": {
        "derivatives": (-687.76, 250.37, 130.8, 0.0),
    },
    "mass_matrix": {
        "crba": (-79.0, -2.0, 32.0, 0.0),
        "ness": (42.0, -95.0, 54.0, 6.0),
        "hemami": (-97.0, -24.0, 66.0, 6.0),
        "angeles": (40.0, -88.0, 49.0, 6.0),
        "walker_orin": (-166.0, 59.0, 32.0, 0.0),
        "bae_hwang": (-217.0, 179.0, 11.0, 0.0),
        "denoc": (-76.0, -16.0, 41.0, 0.0),
        "joint_coordinates": (-142.0, 90.0, 28.0, 6.0),
        "oke": (-197.0, 74.0, 28.0, 6.0),
        "vke": (-216.0, 37.0, 68.0, 0.0),
        "oneb": (71.0, -180.0, 112.0, 0.0),
        "vneb": (-161.0, -5.0, 71.0, 0.0),
        "ocrb": (-166.0, 59.0, 32.0, 0.0),
        "vcrb": (-245.0, 97.0, 17.0, 0.0),
        "vneb_parallel": (-90.91, -126.04, 127.27, 0.0),
        "vcrb_parallel": (-516.54, 155.58, 38.87, 0.0),
        "newton_euler_symbolic": (-142.0, 90.0, 28.0, 6.0),
    },
    "inverse_mass_matrix": {
        "crba": (-80.0, -1.0, 29.0, 3.0),
        "denoc": (-322.0, 110.0, 38.0, 1.0),
    },
    "mass_matrix_factors": {
        "crba": (-81.0, -2.0, 32.0, 1.0),
        "denoc": (-326.0, 121.0, 32.0, 0.0),
    },
    "bias": {
        "rnea": (-251.0, 156.0, 0.0, 0.0),
        "ness": (-160.0, 49.0, 50.0, 0.0),
        "hemami": (-382.0, 174.0, 60.0, 0.0),
        "angeles": (-267.0, 175.0, 0.0, 0.0),
        "joint_coordinates": (-246.0, 142.0, 57.0, 0.0),
        "newton_euler_symbolic": (-293.0, 204.0, 26.0, 0.0),
    },
    "gravity_torque": {
        "rnea": (-65.0, 32.0, 0.0, 0.0),
        "newton_euler_symbolic": (-110.0, 46.0, 7.0, 0.0),
    },
    "coriolis_torque": {
        "rnea": (-253.0, 156.0, 0.0, 0.0),
        "newton_euler_symbolic": (-293.0, 206.0, 24.0, 0.0),
    },
    "coriolis_matrix": {
        "coriolis": (-353.95, 90.18, 83.73, 0.0),
    },
    "reactions": {
        "reactions": (-900.0, 591.0, 0.0, 0.0),
        "absolute": (-999.0, 1204.0, 0.0, 0.0),
        "newton_euler_symbolic": (-985.0, 1196.0, 0.0, 0.0),
    },
    "multipliers": {
        "absolute": (-1003.0, 1174.0, 0.0, 0.0),
    },
    "passive_torque": {
        "kinematics": (0.0, 0.0, 0.0, 0.0),
    },
    "kinetic_energy": {
        "kinematics": (-103.0, 72.0, 0.0, 0.0),
    },
    "potential_energy": {
        "kinematics": (-50.0, 24.0, 0.0, 0.0),
    },
    "pose": {
        "kinematics": (-58.0, 48.0, 0.0, 0.0),
    },
    "velocity": {
        "kinematics": (-80.0, 69.0, 0.0, 0.0),
    },
    "jacobian": {
        "kinematics": (-114.0, 60.0, 0.0, 0.0),
    },
    "poses": {
        "frame_motion": (-55.0, 48.0, 0.0, 0.0),
    },
    "acceleration": {
        "frame_motion": (-132.0, 104.0, 0.0, 0.0),
    },
    "spatial_acceleration": {
        "frame_motion": (-121.0, 124.0, 0.0, 0.0),
    },
    "jacobian_rate": {
        "frame_motion": (-159.0, 126.0, 0.0, 0.0),
    },
    "com": {
        "centroidal": (-14.0, 15.0, 0.0, 0.0),
        "kinematics": (-116.0, 72.0, 0.0, 0.0),
    },
    "com_velocity": {
        "centroidal": (-121.0, 69.0, 0.0, 0.0),
    },
    "com_acceleration": {
        "centroidal": (-145.0, 111.0, 0.0, 0.0),
    },
    "com_jacobian": {
        "centroidal": (-116.0, 63.0, 0.0, 0.0),
    },
    "momentum": {
        "centroidal": (-207.0, 167.0, 0.0, 0.0),
        "kinematics": (-230.0, 195.0, 0.0, 0.0),
    },
    "momentum_rate": {
        "centroidal": (-209.0, 191.0, 0.0, 0.0),
    },
    "momentum_matrix": {
        "centroidal": (-199.0, 155.0, 0.0, 0.0),
    },
    "momentum_matrix_rate": {
        "centroidal": (-521.0, 404.0, 0.0, 0.0),
    },
    "rate": {
        "kinematics": (0.0, 0.0, 0.0, 0.0),
    },
    "integrate": {
        "kinematics": (0.0, 1.0, 0.0, 0.0),
    },
    "difference": {
        "kinematics": (0.0, 1.0, 0.0, 0.0),
    },
}
