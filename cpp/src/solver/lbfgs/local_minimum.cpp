// Descent where no bound is known: a smooth objective that is not convex comes in, a point where its gradient vanishes
// goes out.

#include "solver/lbfgs/descent.hpp"
#include "solver/lbfgs/samples.hpp"
#include "solver/method.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace halosvm {
namespace {

/// A matrix near the Hessian of the convex majorant, of all examples or of a sample; null where none pays.
std::shared_ptr<const CholeskyFactor> model_of_hessian(const LocalObjective& problem, const Moments& about,
                                                       const LinearModel& model) {
  const LocalObjective convex = problem.with_loss(make_loss(problem.loss()->traits().majorant));
  if (const Index size = sample_size(problem); size > 0) {
    std::vector<Index> rows = spread_rows(problem, size);
    if (has_all_classes(problem, rows)) return HessianModel(convex.sampled(std::move(rows)), about, model).factor;
  }
  constexpr Index dear = 400;  // passes that take as long as a Hessian of dense means and its factor
  const Index n = problem.n_samples();
  const Index d = problem.n_features();
  if (problem.data().means().sparse() || d + d * d / (3 * n) > dear) return nullptr;
  auto factor = std::make_shared<CholeskyFactor>();
  const bool known = factor->compute(convex.hessian(model.coef, model.intercept, about.centre));
  return known ? factor : nullptr;
}

}  // namespace

Result run_descent(const LocalObjective& problem, const Moments& about, const LinearModel& start,
                   const BatchSettings& settings) {
  constexpr double resolution = 0.01;
  const Index d = problem.n_features();
  const Vector& centre = about.centre;
  Vector u(d + 1);
  u << start.coef.row(0).transpose(), start.intercept(0) + start.coef.row(0).dot(centre);
  Vector variance(d + 1);
  variance << about.variance.cwiseMax(1e-300), 1.0;
  Descent walk(u, variance, problem.regularisation());
  if (auto factor = model_of_hessian(problem, about, start)) walk.precondition(std::move(factor), 1.0);

  Result best;
  best.model = start;
  best.objective = Vector::Constant(1, infinity);
  best.lower_bound = Vector::Zero(1);
  best.suboptimality = best.objective;
  LinearModel model(1, d);
  Evaluation at(1, d);
  Vector gradient(d + 1);
  bool balanced = !problem.fit_intercept();  // J is convex in b, whose best value is found by itself
  for (best.steps = 1;; ++best.steps) {
    u = walk.trial();
    model.coef.row(0) = u.head(d).transpose();
    model.intercept(0) = problem.fit_intercept() ? u(d) - u.head(d).dot(centre) : 0.0;
    problem.value_and_gradient(model.coef, model.intercept, at);
    const double value = at.value(0);
    if (value < best.objective(0)) {
      best.model = model;
      best.objective(0) = value;
    }
    if (settings.report) settings.report({best.steps, best.objective(0), infinity});
    gradient << at.coef.row(0).transpose() - at.intercept(0) * centre, at.intercept(0);
    // Of a convex J it would bound what is left to gain.
    const auto open = [&](const Vector& slope) {
      return slope.head(d).squaredNorm() / (2.0 * problem.regularisation());
    };
    const bool near = walk.leads(value) && open(gradient) <= resolution * settings.tolerance * value;
    best.status = near && balanced ? Status::stationary : Status::max_iterations;
    if (best.status == Status::stationary || best.steps >= settings.max_iterations) break;
    walk.observe(value, gradient, at.curvature(0));
    if (walk.exhausted()) {
      const bool enough = open(walk.gradient()) <= settings.tolerance * best.objective(0);
      best.status = enough ? Status::stationary : Status::stalled;
      break;
    }
    if (!problem.fit_intercept()) continue;
    balanced = near;
    if (!near) continue;
    const Vector exact = problem.exact_intercept(model.coef, model.intercept);
    u(d) += exact(0) - model.intercept(0);
    walk.jump(u);
  }
  best.epochs = best.steps;
  return best;
}

}  // namespace halosvm
