// Times runs of the classical Runge-Kutta method around Pinocchio's aba; bench/baseline.py builds and calls it.
//
//   pinocchio_rk4 CORE MODEL START STEPS STEP SECONDS
//
// MODEL is a model that Pinocchio's Python side saved as text, START a file with the numbers of q and v. One run is STEPS
// steps of STEP seconds without joint forces; runs are repeated for SECONDS, in both conventions, and the faster one
// prints a line of JSON with the state at the end, so that the caller can see that it is the same run as its own.
// Joints with one coordinate each, so that q moves by plain addition: nothing is cheaper.

#include <sched.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include "pinocchio/algorithm/aba.hpp"
#include "pinocchio/serialization.hpp"

namespace pin = pinocchio;
using Eigen::VectorXd;
using Clock = std::chrono::steady_clock;

struct Run {
  const pin::Model & model;
  pin::Data data;
  pin::Convention convention;
  VectorXd q, v, tau, q1, v1, v2, v3, v4, a1, a2, a3, a4;

  Run(const pin::Model & m, pin::Convention c) : model(m), data(m), convention(c) {
    for (VectorXd * x : {&q, &v, &tau, &q1, &v1, &v2, &v3, &v4, &a1, &a2, &a3, &a4}) x->setZero(m.nv);
  }

  void go(int steps, double h) {
    for (int n = 0; n < steps; ++n) {
      v1 = v;
      a1 = pin::aba(model, data, q, v1, tau, convention);
      q1 = q + (0.5 * h) * v1;
      v2 = v + (0.5 * h) * a1;
      a2 = pin::aba(model, data, q1, v2, tau, convention);
      q1 = q + (0.5 * h) * v2;
      v3 = v + (0.5 * h) * a2;
      a3 = pin::aba(model, data, q1, v3, tau, convention);
      q1 = q + h * v3;
      v4 = v + h * a3;
      a4 = pin::aba(model, data, q1, v4, tau, convention);
      q += (h / 6) * (v1 + 2 * v2 + 2 * v3 + v4);
      v += (h / 6) * (a1 + 2 * a2 + 2 * a3 + a4);
    }
  }
};

int main(int argc, char ** argv) try {
  if (argc != 7) throw std::invalid_argument("expected CORE MODEL START STEPS STEP SECONDS");
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(std::stoi(argv[1]), &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) throw std::runtime_error("cannot run on that core");
  pin::Model model;
  pin::serialization::loadFromText(model, std::string(argv[2]));
  if (model.nq != model.nv) throw std::invalid_argument("a joint has more coordinates than velocities");
  VectorXd start(2 * model.nv);
  std::ifstream file(argv[3]);
  for (double & x : start)
    if (!(file >> x)) throw std::runtime_error("too few numbers in the start");
  const int steps = std::stoi(argv[4]);
  const double h = std::stod(argv[5]), seconds = std::stod(argv[6]);

  double best = 1e300;
  const char * name = "";
  VectorXd end;
  for (const auto & [convention, called] :
       {std::pair(pin::Convention::LOCAL, "LOCAL"), std::pair(pin::Convention::WORLD, "WORLD")}) {
    Run run(model, convention);
    const auto begin = Clock::now();
    for (int n = 0; n < 4 || Clock::now() - begin < std::chrono::duration<double>(seconds); ++n) {
      run.q = start.head(model.nv);
      run.v = start.tail(model.nv);
      const auto t0 = Clock::now();
      run.go(steps, h);
      const double ns = std::chrono::duration<double, std::nano>(Clock::now() - t0).count() / steps;
      if (ns < best) best = ns, name = called, end = (VectorXd(2 * model.nv) << run.q, run.v).finished();
    }
  }
  std::printf("{\"ns_min\": %.2f, \"convention\": \"%s\", \"pinocchio\": \"" PINOCCHIO_VERSION "\", \"end\": [", best, name);
  for (int i = 0; i < end.size(); ++i) std::printf("%s%.17g", i ? ", " : "", end[i]);
  std::printf("]}\n");
} catch (const std::exception & error) {
  std::fprintf(stderr, "pinocchio_rk4: %s\n", error.what());
  return 1;
}
