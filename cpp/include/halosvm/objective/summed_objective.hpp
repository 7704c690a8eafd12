/// \file
/// A sum of objectives of the same shape, each of them a function: chunks of a file, partitions on other machines.
#pragma once

#include "halosvm/objective/objective.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// J = sum over parts of share * J_part, where share is the part's weight over that of all: if each part's weights add
/// up to 1 in it, this is J of all examples.
class SummedObjective final : public Objective {
 public:
  /// One part. \p evaluate is Objective::evaluate with the whole regulariser; it may throw, which ends the search.
  struct Part {
    double weight;  ///< sum of the weights of its examples
    /// Objective::evaluate of the part.
    std::function<void(const ConstMatrixRef& W, const ConstVectorRef& b, double floor, Evaluation& out)> evaluate;
    std::function<Moments()> moments;  ///< Objective::moments of the part
  };

  /// \param at_origin the largest J(0, 0), where the targets of examples are values and not labels. It is then taken
  /// for J(0), too, which is lower: a search for the best intercept would cost a pass over all parts for each step.
  /// \param many_kinks what \ref has_many_kinks answers, which only the parts can know.
  /// \throws std::invalid_argument without parts, for a weight that is negative or not finite, or if all are 0.
  SummedObjective(std::vector<Part> parts, Index n_problems, Index n_features, double regularisation,
                  std::shared_ptr<const Loss> loss, bool fit_intercept, std::optional<double> at_origin = {},
                  bool many_kinks = false);

  Index n_problems() const override { return n_problems_; }
  Index n_features() const override { return n_features_; }
  double regularisation() const override { return regularisation_; }
  bool fit_intercept() const override { return fit_intercept_; }
  const std::shared_ptr<const Loss>& loss() const override { return loss_; }
  /// False where nobody knows.
  bool all_certain() const override { return !loss_->uses_spread(); }
  /// Also where the parts say so.
  bool has_many_kinks() const override { return kinked_everywhere() || (many_kinks_ && loss_->traits().kinked); }
  void evaluate(const ConstMatrixRef& W, const ConstVectorRef& b, double floor, Evaluation& out) const override;
  Moments moments() const override;
  double value_at_origin() const override { return at_origin_ ? *at_origin_ : Objective::value_at_origin(); }
  Vector value_at_zero() const override {
    return at_origin_ ? Vector::Constant(n_problems_, *at_origin_).eval() : Objective::value_at_zero();
  }

 private:
  std::vector<Part> parts_;
  Index n_problems_, n_features_;
  double regularisation_;
  std::shared_ptr<const Loss> loss_;
  bool fit_intercept_;
  std::optional<double> at_origin_;
  bool many_kinks_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
