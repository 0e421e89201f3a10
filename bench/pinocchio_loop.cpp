// Times Pinocchio's aba, crba and rnea in a tight loop over random states; bench/baseline.py builds and calls it.
//
//   pinocchio_loop [--core N] [--states N] [--seconds S] (--model FILE | --chain N | --tree N) ALGORITHM...
//
// The arguments are read in order: a model option replaces the model, and each algorithm name after it is one job,
// which prints one line of JSON. FILE is a model that Pinocchio's Python side parsed from a URDF and saved as text:
// the precompiled parser can only be linked with its own Eigen alignment, which would hold this program back.

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pinocchio/algorithm/aba.hpp"
#include "pinocchio/algorithm/crba.hpp"
#include "pinocchio/algorithm/joint-configuration.hpp"
#include "pinocchio/algorithm/rnea.hpp"
#include "pinocchio/serialization.hpp"

namespace pin = pinocchio;
using Eigen::VectorXd;
using Clock = std::chrono::steady_clock;

// The library is instantiated for Ref arguments only, so only these reach its precompiled code.
#ifdef PINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION
using Argument = Eigen::Ref<const VectorXd>;
#else
using Argument = const VectorXd &;
#endif

struct State {
  VectorXd q, v, u;  // u: the force for aba, the acceleration for rnea
};

struct Result {
  std::string convention;
  double min_ns, median_ns;
  int repetitions;
};

// A serial chain, or the binary tree in which body i hangs on body (i-1)/2; revolute about z, x, z, x...
static pin::Model made(int bodies, bool tree) {
  pin::Model model;
  const Eigen::Matrix3d about_com = Eigen::Vector3d(0.02, 0.02, 0.01).asDiagonal();
  const pin::Inertia inertia(1.0, Eigen::Vector3d(0.01, 0.02, 0.1), about_com);
  for (int i = 0; i < bodies; ++i) {
    const int parent = tree ? (i + 1) / 2 - 1 : i - 1;  // -1 is the world, Pinocchio's joint 0
    const pin::SE3 placement(Eigen::Matrix3d::Identity(), Eigen::Vector3d(0.05, 0.0, 0.2));
    const pin::JointModel joint =
        i % 2 ? pin::JointModel(pin::JointModelRX()) : pin::JointModel(pin::JointModelRZ());
    const auto index = model.addJoint(parent + 1, joint, placement, "joint" + std::to_string(i));
    model.appendBodyToJoint(index, inertia, pin::SE3::Identity());
  }
  return model;
}

static std::vector<State> random_states(const pin::Model & model, int count) {
  // A limit that is missing (or is a huge stand-in for none) becomes half a turn: angles stay in [-pi, pi].
  auto finite = [](double x) { return std::abs(x) < 1e3 ? x : std::copysign(M_PI, x); };
  const VectorXd low = model.lowerPositionLimit.unaryExpr(finite), high = model.upperPositionLimit.unaryExpr(finite);
  std::vector<State> states;
  for (int i = 0; i < count; ++i)
    states.push_back({pin::randomConfiguration(model, low, high), VectorXd::Random(model.nv), VectorXd::Random(model.nv)});
  return states;
}

// How far the three algorithms disagree (relative): the build is wrong unless this is near rounding.
static double disagreement(const pin::Model & model, pin::Data & data, const State & s) {
  const VectorXd a = pin::aba(model, data, Argument(s.q), Argument(s.v), Argument(s.u));
  const VectorXd zero = VectorXd::Zero(model.nv);
  const VectorXd bias = pin::rnea(model, data, Argument(s.q), Argument(s.v), Argument(zero));
  const VectorXd tau = pin::rnea(model, data, Argument(s.q), Argument(s.v), Argument(a));
  const Eigen::MatrixXd m = pin::crba(model, data, Argument(s.q)).selfadjointView<Eigen::Upper>();
  const double size = (m.cwiseAbs() * a.cwiseAbs() + bias.cwiseAbs()).maxCoeff() + s.u.cwiseAbs().maxCoeff();
  return std::max((tau - s.u).cwiseAbs().maxCoeff(), (m * a + bias - tau).cwiseAbs().maxCoeff()) / size;
}

static double sink = 0;  // printed, so that no call can be dropped

template <class Call>
static Result measure(const char * convention, const std::vector<State> & states, double seconds, Call call) {
  std::vector<double> ns;
  const auto begin = Clock::now();
  for (bool warm = false; !warm || ns.size() < 9 || Clock::now() - begin < std::chrono::duration<double>(seconds);) {
    const auto t0 = Clock::now();
    for (const State & s : states) sink += call(s);
    const std::chrono::duration<double, std::nano> t = Clock::now() - t0;
    if (std::exchange(warm, true)) ns.push_back(t.count() / states.size());  // the first pass only warms the caches
  }
  std::sort(ns.begin(), ns.end());
  return {convention, ns.front(), ns[ns.size() / 2], int(ns.size())};
}

static Result run(const std::string & algorithm, const pin::Model & model, const std::vector<State> & states,
                  double seconds) {
  pin::Data data(model);
  const int last = model.nv - 1;
  if (algorithm == "rnea")  // the only one without a choice of convention
    return measure("LOCAL", states, seconds, [&](const State & s) {
      return pin::rnea(model, data, Argument(s.q), Argument(s.v), Argument(s.u))[last];
    });
  if (algorithm != "aba" && algorithm != "crba") throw std::invalid_argument("no such algorithm: " + algorithm);

  // Which convention is faster depends on the robot, so both are timed and the peer gets its better one.
  std::vector<Result> both;
  for (const auto & [convention, name] : {std::pair{pin::Convention::LOCAL, "LOCAL"}, {pin::Convention::WORLD, "WORLD"}})
    both.push_back(algorithm == "aba"
      ? measure(name, states, seconds, [&, c = convention](const State & s) {
          return pin::aba(model, data, Argument(s.q), Argument(s.v), Argument(s.u), c)[last];
        })
      : measure(name, states, seconds, [&, c = convention](const State & s) {
          return pin::crba(model, data, Argument(s.q), c)(0, last);
        }));
  return both[0].median_ns <= both[1].median_ns ? both[0] : both[1];
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
      pin::Data data(model);
      const double error = disagreement(model, data, inputs[0]);
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
      model = made(std::stoi(value), word == "--tree");
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
