// A sum of objectives: their evaluations and moments come in, those of all examples go out.

#include "halosvm/objective/summed_objective.hpp"

#include "halosvm/core/check.hpp"

#include <cmath>
#include <utility>

namespace halosvm {

SummedObjective::SummedObjective(std::vector<Part> parts, Index n_problems, Index n_features, double regularisation,
                                 std::shared_ptr<const Loss> loss, bool fit_intercept, std::optional<double> at_origin,
                                 bool many_kinks)
    : parts_(std::move(parts)),
      n_problems_(n_problems),
      n_features_(n_features),
      regularisation_(regularisation),
      loss_(std::move(loss)),
      fit_intercept_(fit_intercept),
      at_origin_(at_origin),
      many_kinks_(many_kinks) {
  check::require(!parts_.empty(), "parts", "must not be empty");
  check::require(n_problems > 0, "n_problems", "must be positive");
  check::require(n_features > 0, "n_features", "must be positive");
  check::positive("regularisation", regularisation);
  check::given(loss_, "loss");
  if (at_origin) check::not_negative("at_origin", *at_origin);
  double total = 0.0;
  Index number = 0;
  for (const Part& part : parts_) {
    if (!(part.weight >= 0.0) || !std::isfinite(part.weight)) {
      check::fail_at("weights", number, -1, part.weight, "a weight must be >= 0 and finite");
    }
    check::require(part.evaluate && part.moments, "parts",
                   "have no function evaluate or moments at " + std::to_string(number));
    total += part.weight;
    ++number;
  }
  check::require(total > 0.0 && std::isfinite(total), "weights", "must have a positive and finite sum");
  for (Part& part : parts_) part.weight /= total;
}

void SummedObjective::evaluate(const ConstMatrixRef& W, const ConstVectorRef& b, double floor, Evaluation& out) const {
  check_point(W, b);
  out.check_shape("out", n_problems_, n_features_);
  out.set_zero();
  Evaluation one(n_problems_, n_features_);
  for (const Part& part : parts_) {
    if (part.weight == 0.0) continue;
    part.evaluate(W, b, floor, one);
    one.check_shape("a part's evaluation", n_problems_, n_features_);
    out.add(one, part.weight);
  }
}

Moments SummedObjective::moments() const {
  std::vector<Moments> all;
  Moments total;
  total.mean.setZero(n_features_);
  for (const Part& part : parts_) {
    all.push_back(part.weight == 0.0 ? Moments{} : part.moments());
    if (part.weight == 0.0) continue;
    for (const Vector* each : {&all.back().mean, &all.back().centre, &all.back().variance}) {
      check::same_size("a part's moments", each->size(), "objective", n_features_, "features");
    }
    total.mean += part.weight * all.back().mean;
  }
  total.centre = fit_intercept_ ? total.mean : Vector::Zero(n_features_).eval();
  total.variance.setZero(n_features_);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].weight == 0.0) continue;
    // Each part's variance is about its own centre, that about another one larger by the square between them.
    const Vector between = fit_intercept_ ? Vector(all[i].centre - total.centre) : Vector::Zero(n_features_).eval();
    total.variance += parts_[i].weight * (all[i].variance + between.cwiseAbs2());
    if (all[i].widest.size() == 0) continue;
    total.widest = total.widest.size() == 0 ? all[i].widest : Vector(total.widest.cwiseMax(all[i].widest));
  }
  return total;
}

}  // namespace halosvm
