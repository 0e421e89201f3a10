// Times Pinocchio's aba, its derivatives, crba and rnea in a tight loop over random states; bench/baseline.py builds and calls it.
//
//   pinocchio_loop [--core N] [--states N] [--seconds S] (--model FILE | --chain N | --tree N) ALGORITHM... ...
//
// The arguments are read in order: a model option replaces the model, and each algorithm name after it is one job,
// which prints one line of JSON. FILE is a model that Pinocchio's Python side parsed from a URDF and saved as text: the
// precompiled parser could be linked only at the library's own Eigen alignment, and its headers are not in `pin`.

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pinocchio/algorithm/aba-derivatives.hpp"
#include "pinocchio/algorithm/aba.hpp"
#include "pinocchio/algorithm/crba.hpp"
#include "pinocchio/algorithm/joint-configuration.hpp"
#include "pinocchio/algorithm/rnea.hpp"
#include "pinocchio/serialization.hpp"

namespace pin = pinocchio;
using Eigen::VectorXd;
using Clock = std::chrono::steady_clock;

const std::pair<pin::Convention, const char *> conventions[] = {
  {pin::Convention::LOCAL, "LOCAL"}, {pin::Convention::WORLD, "WORLD"}};

struct State {
  VectorXd q, v, u;  // u: the force for aba, the acceleration for rnea
};

struct Result {
  std::string convention;
  double min_ns, median_ns;
  int repetitions;
};

// Body i and all below it: the chain's child is i+1, the binary tree's are 2i+1 and 2i+2; revolute about z, x, z, x...
// Depth first, because Pinocchio's crba is wrong unless the joints of each subtree have consecutive indices.
static void add_bodies(pin::Model & model, int i, int count, bool tree, pin::JointIndex parent) {
  if (i >= count) return;
  const pin::SE3 placement(Eigen::Matrix3d::Identity(), Eigen::Vector3d(0.05, 0.0, 0.2));
  const Eigen::Matrix3d about_com = Eigen::Vector3d(0.02, 0.02, 0.01).asDiagonal();
  const pin::JointModel z = pin::JointModelRZ(), x = pin::JointModelRX();
  const auto joint = model.addJoint(parent, i % 2 ? x : z, placement, "joint" + std::to_string(i));
  model.appendBodyToJoint(joint, pin::Inertia(1.0, Eigen::Vector3d(0.01, 0.02, 0.1), about_com), pin::SE3::Identity());
  add_bodies(model, tree ? 2 * i + 1 : i + 1, count, tree, joint);
  if (tree) add_bodies(model, 2 * i + 2, count, tree, joint);
}

static std::vector<State> random_states(const pin::Model & model, int count) {
  // A limit that is missing (or is a huge stand-in for none) becomes half a turn: angles stay in [-pi, pi].
  auto finite = [](double x) { return std::abs(x) < 1e3 ? x : std::copysign(M_PI, x); };
  const VectorXd low = model.lowerPositionLimit.unaryExpr(finite), high = model.upperPositionLimit.unaryExpr(finite);
  std::vector<State> states;
  for (int i = 0; i < count; ++i)
    states.push_back(
      {pin::randomConfiguration(model, low, high), VectorXd::Random(model.nv), VectorXd::Random(model.nv)});
  return states;
}

// How far the three algorithms disagree, relative to the terms in their sums: anything but rounding is a wrong build.
static double disagreement(const pin::Model & model, const State & s) {
  pin::Data data(model);
  const VectorXd bias = pin::rnea(model, data, s.q, s.v, VectorXd::Zero(model.nv));
  double worst = 0;
  for (const auto & [convention, name] : conventions) {
    const VectorXd a = pin::aba(model, data, s.q, s.v, s.u, convention);
    const VectorXd u = pin::rnea(model, data, s.q, s.v, a);
    const Eigen::MatrixXd m = pin::crba(model, data, s.q, convention).selfadjointView<Eigen::Upper>();
    const double size = (m.cwiseAbs() * a.cwiseAbs() + bias.cwiseAbs() + s.u.cwiseAbs()).maxCoeff();
    const double error = std::max((u - s.u).cwiseAbs().maxCoeff(), (m * a + bias - s.u).cwiseAbs().maxCoeff());
    worst = std::max(worst, error / size);
  }
  return worst;
}

static double sink = 0;  // printed, so that no call can be dropped

template <class Call>
static Result measure(const char * convention, const std::vector<State> & states, double seconds, Call call) {
  std::vector<double> ns;
  for (const State & s : states) sink += call(s);  // warms the caches
  const auto begin = Clock::now();
  do {
    const auto t0 = Clock::now();
    for (const State & s : states) sink += call(s);
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - t0).count() / states.size());
  } while (ns.size() < 9 || Clock::now() - begin < std::chrono::duration<double>(seconds));
  std::sort(ns.begin(), ns.end());
  return {convention, ns.front(), ns[ns.size() / 2], int(ns.size())};
}

static Result run(const std::string & algorithm, const pin::Model & model, const std::vector<State> & states,
                  double seconds) {
  pin::Data data(model);
  const int last = model.nv - 1;
  if (algorithm == "rnea")  // the only one without a choice of convention
    return measure("LOCAL", states, seconds, [&](const State & s) {
      return pin::rnea(model, data, s.q, s.v, s.u)[last];
    });
  if (algorithm == "computeABADerivatives")
    return measure("LOCAL", states, seconds, [&](const State & s) {
      pin::computeABADerivatives(model, data, s.q, s.v, s.u);
      return data.ddq_dq(0, last) + data.ddq_dv(0, last) + data.Minv(0, last);
    });
  if (algorithm != "aba" && algorithm != "crba") throw std::invalid_argument("no such algorithm: " + algorithm);

  // Which convention is faster depends on the robot, so both are timed and the peer gets its better one.
  std::vector<Result> both;
  for (const auto & [convention, name] : conventions)
    both.push_back(algorithm == "aba"
      ? measure(name, states, seconds, [&, c = convention](const State & s) {
          return pin::aba(model, data, s.q, s.v, s.u, c)[last];
        })
      : measure(name, states, seconds, [&, c = convention](const State & s) {
          return pin::crba(model, data, s.q, c)(0, last);
        }));
  return both[0].min_ns <= both[1].min_ns ? both[0] : both[1];  // a busy machine disturbs the median
}

int main(int argc, char ** argv) try {
  pin::Model model;
  int states = 1024;
  double seconds = 0.2;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      if (model.nv == 0) throw std::invalid_argument("no model before " + word);
      const auto inputs = random_states(model, states);
      const double error = disagreement(model, inputs[0]);
      if (!(error < 1e-9)) throw std::runtime_error("aba, crba and rnea disagree by " + std::to_string(error));
      const Result r = run(word, model, inputs, seconds);
      std::printf("{\"algorithm\": \"%s\", \"nq\": %d, \"nv\": %d, \"states\": %d, \"convention\": \"%s\", "
                  "\"ns_min\": %.2f, \"ns_median\": %.2f, \"repetitions\": %d, \"disagreement\": %.3g, "
                  "\"pinocchio\": \"" PINOCCHIO_VERSION "\", \"checksum\": %.17g}\n",
                  word.c_str(), model.nq, model.nv, states, r.convention.c_str(), r.min_ns, r.median_ns,
                  r.repetitions, error, std::isfinite(sink) ? sink : 0.0);
      std::fflush(stdout);  // a reader may be waiting for this job's line
      continue;
    }
    if (++i == argc) throw std::invalid_argument(word + " needs a value");
    const std::string value = argv[i];
    if (word == "--model") {
      model = pin::Model();
      pin::serialization::loadFromText(model, value);
    } else if (word == "--chain" || word == "--tree") {
      model = pin::Model();
      add_bodies(model, 0, std::stoi(value), word == "--tree", 0);
    } else if (word == "--states") {
      states = std::stoi(value);
    } else if (word == "--seconds") {
      seconds = std::stod(value);
    } else if (word == "--core") {
      cpu_set_t cores;
      CPU_ZERO(&cores);
      CPU_SET(std::stoi(value), &cores);
      if (sched_setaffinity(0, sizeof cores, &cores) != 0) throw std::runtime_error("cannot run on core " + value);
    } else {
      throw std::invalid_argument("no such option: " + word);
    }
  }
} catch (const std::exception & error) {
  std::fprintf(stderr, "pinocchio_loop: %s\n", error.what());
  return 1;
}
