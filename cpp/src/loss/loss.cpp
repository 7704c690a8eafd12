// The table of losses: a name comes in, a loss goes out.

#include "halosvm/loss/loss.hpp"

#include "halosvm/core/check.hpp"
#include "halosvm/loss/best_case.hpp"
#include "halosvm/loss/expected_hinge.hpp"
#include "halosvm/loss/expected_huber_hinge.hpp"
#include "halosvm/loss/expected_logistic.hpp"
#include "halosvm/loss/expected_squared_hinge.hpp"
#include "halosvm/loss/hinge.hpp"
#include "halosvm/loss/marginal_logistic.hpp"
#include "halosvm/loss/worst_case.hpp"

#include <utility>

namespace halosvm {
namespace {

template <class Scalar, class Kind = BlockLoss<Scalar>>
std::pair<std::string, std::shared_ptr<const Loss>> entry() {
  return {Scalar::name, std::make_shared<Kind>()};
}

/// Every loss, one line each.
const auto& table() {
  static const std::vector<std::pair<std::string, std::shared_ptr<const Loss>>> losses = {
      entry<ExpectedHinge>(),
      entry<Hinge>(),
      entry<ExpectedSquaredHinge>(),
      entry<ExpectedHuberHinge>(),
      entry<ExpectedLogistic>(),
      entry<MarginalLogistic>(),
      entry<WorstCase, WorstCaseLoss>(),
      entry<BestCase>(),
  };
  return losses;
}

}  // namespace

std::vector<std::string> loss_names() {
  std::vector<std::string> names;
  for (const auto& [name, loss] : table()) names.push_back(name);
  return names;
}

std::shared_ptr<const Loss> smoothed_loss(std::shared_ptr<const Loss> loss, double floor) {
  check::not_negative("floor", floor);
  if (auto soft = check::given(loss, "loss")->softened(floor)) return soft;
  const char* other = loss->traits().smoothed;
  return other != nullptr ? make_loss(other) : std::move(loss);
}

std::shared_ptr<const Loss> make_loss(const std::string& name) {
  for (const auto& [known, loss] : table()) {
    if (known == name) return loss;
  }
  std::string all;
  for (const auto& known : loss_names()) all += (all.empty() ? "" : ", ") + known;
  check::fail("loss", "is '" + name + "'; it must be one of " + all);
}

}  // namespace halosvm
