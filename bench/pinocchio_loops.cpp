// Times runs of the classical Runge-Kutta method around Pinocchio's constraintDynamics; bench/loops.py builds and calls it.
//
//   pinocchio_loops CORE MODEL LOOPS START STEPS STEP SECONDS MU ROUNDS
//
// MODEL is a model that Pinocchio's Python side saved as text, START a file with the numbers of q and v. LOOPS has a line
// for each loop: joint, point, joint, point, in the joints' frames; the points meet (CONTACT_3D). MU and ROUNDS are the
// proximal solver's: loops in a plane have rows that depend on each other, which it needs MU > 0 for. One run is STEPS
// steps of STEP seconds without joint forces; runs are repeated for SECONDS, and the best prints a line of JSON with the
// state at the end and how far apart the points are there. Nothing is projected or corrected: nothing is cheaper.

#include <sched.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include "pinocchio/algorithm/constrained-dynamics.hpp"
#include "pinocchio/algorithm/kinematics.hpp"
#include "pinocchio/serialization.hpp"

namespace pin = pinocchio;
using Eigen::Vector3d;
using Eigen::VectorXd;
using Clock = std::chrono::steady_clock;

struct Run {
  const pin::Model & model;
  pin::Data data;
  const std::vector<pin::RigidConstraintModel> & loops;
  std::vector<pin::RigidConstraintData> datas;
  pin::ProximalSettings settings;
  VectorXd q, v, tau, q1, v1, v2, v3, v4, a1, a2, a3, a4;

  Run(const pin::Model & m, const std::vector<pin::RigidConstraintModel> & l, double mu, int rounds)
  : model(m), data(m), loops(l), settings(1e-14, mu, rounds) {
    for (VectorXd * x : {&q, &v, &tau, &q1, &v1, &v2, &v3, &v4, &a1, &a2, &a3, &a4}) x->setZero(m.nv);
    for (const auto & loop : loops) datas.emplace_back(loop);
    pin::initConstraintDynamics(model, data, loops, datas);
  }

  const VectorXd & a(const VectorXd & q, const VectorXd & v) {
    return pin::constraintDynamics(model, data, q, v, tau, loops, datas, settings);
  }

  void go(int steps, double h) {
    for (int n = 0; n < steps; ++n) {
      v1 = v;
      a1 = a(q, v1);
      q1 = q + (0.5 * h) * v1;
      v2 = v + (0.5 * h) * a1;
      a2 = a(q1, v2);
      q1 = q + (0.5 * h) * v2;
      v3 = v + (0.5 * h) * a2;
      a3 = a(q1, v3);
      q1 = q + h * v3;
      v4 = v + h * a3;
      a4 = a(q1, v4);
      q += (h / 6) * (v1 + 2 * v2 + 2 * v3 + v4);
      v += (h / 6) * (a1 + 2 * a2 + 2 * a3 + a4);
    }
  }

  double open() {
    pin::forwardKinematics(model, data, q);
    double worst = 0;
    for (const auto & loop : loops) {
      const Vector3d one = data.oMi[loop.joint1_id].act(loop.joint1_placement.translation());
      const Vector3d two = data.oMi[loop.joint2_id].act(loop.joint2_placement.translation());
      worst = std::max(worst, (one - two).lpNorm<Eigen::Infinity>());
    }
    return worst;
  }
};

std::vector<pin::RigidConstraintModel> read_loops(const pin::Model & model, const std::string & path) {
  std::vector<pin::RigidConstraintModel> loops;
  std::ifstream file(path);
  std::string one, two;
  Vector3d p, r;
  while (file >> one >> p[0] >> p[1] >> p[2] >> two >> r[0] >> r[1] >> r[2]) {
    const pin::SE3 first(Eigen::Matrix3d::Identity(), p), second(Eigen::Matrix3d::Identity(), r);
    loops.emplace_back(pin::CONTACT_3D, model, model.getJointId(one), first, model.getJointId(two), second, pin::LOCAL);
  }
  return loops;
}

int main(int argc, char ** argv) try {
  if (argc != 10) throw std::invalid_argument("expected CORE MODEL LOOPS START STEPS STEP SECONDS MU ROUNDS");
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(std::stoi(argv[1]), &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) throw std::runtime_error("cannot run on that core");
  pin::Model model;
  pin::serialization::loadFromText(model, std::string(argv[2]));
  if (model.nq != model.nv) throw std::invalid_argument("a joint has more coordinates than velocities");
  const auto loops = read_loops(model, argv[3]);
  VectorXd start(2 * model.nv);
  std::ifstream file(argv[4]);
  for (double & x : start)
    if (!(file >> x)) throw std::runtime_error("too few numbers in the start");
  const int steps = std::stoi(argv[5]);
  const double h = std::stod(argv[6]), seconds = std::stod(argv[7]);

  Run run(model, loops, std::stod(argv[8]), std::stoi(argv[9]));
  double best = 1e300;
  const auto begin = Clock::now();
  for (int n = 0; n < 4 || Clock::now() - begin < std::chrono::duration<double>(seconds); ++n) {
    run.q = start.head(model.nv);
    run.v = start.tail(model.nv);
    const auto t0 = Clock::now();
    run.go(steps, h);
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - t0).count() / steps);
  }
  std::printf("{\"ns_min\": %.2f, \"open\": %.3g, \"pinocchio\": \"" PINOCCHIO_VERSION "\", \"end\": [", best, run.open());
  for (int i = 0; i < 2 * model.nv; ++i) std::printf("%s%.17g", i ? ", " : "", i < model.nv ? run.q[i] : run.v[i - model.nv]);
  std::printf("]}\n");
} catch (const std::exception & error) {
  std::fprintf(stderr, "pinocchio_loops: %s\n", error.what());
  return 1;
}
