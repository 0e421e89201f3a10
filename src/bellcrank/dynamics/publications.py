"""Publications behind the methods, by citation key."""

from __future__ import annotations

SOURCES: dict[str, str] = {
    "angeles1988": "J. Angeles, O. Ma. Dynamic simulation of n-axis serial robotic manipulators using a natural "
    "orthogonal complement. The International Journal of Robotics Research 7(5), 32-47, 1988.",
    "bae1988": "D. S. Bae, R. S. Hwang, E. J. Haug. A recursive formulation for real-time dynamic simulation. "
    "Advances in Design Automation, ASME DE-Vol. 14, 1988.",
    "bejczy1989": "A. Fijany, A. Bejczy. A class of parallel algorithms for the computation of the manipulator inertia "
    "matrix. IEEE Transactions on Robotics and Automation 5(5), 600-615, 1989.",
    "echeandia2021": "S. Echeandia, P. M. Wensing. Numerical methods to compute the Coriolis matrix and Christoffel "
    "symbols for rigid-body systems. Journal of Computational and Nonlinear Dynamics 16(9), 091004, 2021.",
    "featherstone1983": "R. Featherstone. The calculation of robot dynamics using articulated-body inertias. "
    "The International Journal of Robotics Research 2(1), 13-30, 1983.",
    "featherstone1999": "R. Featherstone. A divide-and-conquer articulated-body algorithm for parallel O(log(n)) "
    "calculation of rigid-body dynamics. The International Journal of Robotics Research 18(9), 867-892, 1999.",
    "featherstone2008": "R. Featherstone. Rigid Body Dynamics Algorithms. Springer, 2008.",
    "fijany1989": "A. Fijany. Serial and parallel computation of Kane's equations for multibody dynamics. "
    "Jet Propulsion Laboratory, California Institute of Technology, 1989.",
    "hemami1982": "H. Hemami. A state space model for interconnected rigid bodies. "
    "IEEE Transactions on Automatic Control AC-27(2), 376-382, 1982.",
    "kane1983": "T. R. Kane, D. A. Levinson. The use of Kane's dynamical equations in robotics. "
    "The International Journal of Robotics Research 2(3), 3-21, 1983.",
    "luh1980": "J. Y. S. Luh, M. W. Walker, R. P. C. Paul. On-line computational scheme for mechanical manipulators. "
    "ASME Journal of Dynamic Systems, Measurement, and Control 102(2), 69-76, 1980.",
    "nikravesh1988": "P. E. Nikravesh. Computer-Aided Analysis of Mechanical Systems. Prentice Hall, 1988.",
    "nikravesh1989": "P. E. Nikravesh, G. Gim, A. Arabyan, U. Rein. Systematic generation of multibody equations of "
    "motion suitable for recursive and parallel manipulation. University of Arizona, NASA N90-22992, 1989.",
    "orin2013": "D. E. Orin, A. Goswami, S.-H. Lee. Centroidal dynamics of a humanoid robot. "
    "Autonomous Robots 35(2-3), 161-176, 2013.",
    "saha2003": "S. K. Saha. Simulation of industrial manipulators based on the UDU^T decomposition of inertia matrix. "
    "Multibody System Dynamics 9(1), 63-85, 2003.",
    "schaefer1992": "P. Schaefer, W. Schiehlen. Application of parallel computing to robot dynamics. "
    "University of Stuttgart, Institute B of Mechanics, 1992.",
    "singh2022": "S. Singh, R. P. Russell, P. M. Wensing. Efficient analytical derivatives of rigid-body dynamics "
    "using spatial vector algebra. IEEE Robotics and Automation Letters 7(2), 1776-1783, 2022.",
    "walker1982": "M. W. Walker, D. E. Orin. Efficient dynamic computer simulation of robotic mechanisms. "
    "ASME Journal of Dynamic Systems, Measurement, and Control 104(3), 205-211, 1982.",
    "wehage1988": "R. A. Wehage. Application of matrix partitioning and recursive projection to O(n) solution of "
    "constraint equations of motion. 20th ASME Mechanisms Conference, Orlando, 1988.",
    "wong1991": "D. Wong. Parallel implementation of multibody dynamics for real-time simulation. "
    "PhD thesis, University of British Columbia, 1991.",
}
