// Scores: a model and Gaussians come in, means, standard deviations and probabilities of sides go out.

#include "halosvm/model/linear_model.hpp"

#include "halosvm/core/check.hpp"
#include "halosvm/loss/loss.hpp"
#include "halosvm/core/normal.hpp"
#include "core/double_double.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

// Where processors can, compilers round a product and a sum together, which changes the last bit.
#if defined(__GNUC__) && !defined(__clang__)
#define HALOSVM_ROUNDED_ALONE __attribute__((optimize("fp-contract=off")))
#else
#define HALOSVM_ROUNDED_ALONE
#endif

namespace halosvm {
namespace {

constexpr Index score_block = 64;

/// Runs body(rows, thread slot, output rows) over all blocks of n_samples rows.
template <class Body>
void for_each_block(Index n_samples, const Execution& execution, const Body& body) {
  const Chunks chunks(n_samples, score_block);
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += score_block) {
      checkpoint();
      body(Rows{begin, std::min(score_block, chunks.end(chunk) - begin)}, slot);
    }
  });
}

/// x'w in one order, every product and every sum rounded by itself: a model gives the same scores to the last bit in
/// each program that has it, whatever that was compiled for.
HALOSVM_ROUNDED_ALONE double score(const double* __restrict x, const double* __restrict w, Index size) {
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
  constexpr Index lanes = 16;
  double sum[lanes] = {};
  Index j = 0;
  for (; j + lanes <= size; j += lanes) {
    for (Index l = 0; l < lanes; ++l) sum[l] += x[j + l] * w[j + l];
  }
  double rest = 0.0;
  for (; j < size; ++j) rest += x[j] * w[j];
  for (Index width = lanes / 2; width > 0; width /= 2) {
    for (Index l = 0; l < width; ++l) sum[l] += sum[l + width];
  }
  return sum[0] + rest;
}

/// Two pieces of memory for each thread.
struct ScoreMemory {
  ScoreMemory(Index n_samples, const Execution& execution, Index scratch_size, Index n_problems)
      : scratch(static_cast<std::size_t>(thread_count(Chunks(n_samples, score_block).count(), execution)),
                std::vector<double>(static_cast<std::size_t>(scratch_size))),
        values(scratch.size(), Matrix(n_problems, score_block)) {}
  std::vector<std::vector<double>> scratch;
  std::vector<Matrix> values;
};

void check_scores(const LinearModel& model, Index n_samples, const MatrixRef& out) {
  check::same_size("out", out.rows(), "X", n_samples, "rows");
  check::same_size("out", out.cols(), "coef", model.coef.rows(), "problems");
  check::require(model.coef.allFinite(), "coef", "must be finite");
  check::require(model.intercept.allFinite(), "intercept", "must be finite");
}

}  // namespace

LinearModel seen_from(LinearModel model, const ConstVectorRef& centre) {
  check::same_size("centre", centre.size(), "coef", model.coef.cols(), "columns");
  for (Index k = 0; k < model.coef.rows(); ++k) {
    DoubleDouble sum(model.intercept(k));
    for (Index j = 0; j < centre.size(); ++j) sum.add_product(model.coef(k, j), centre(j));
    model.intercept(k) = sum.value();
  }
  return model;
}

void decision_function(const LinearModel& model, const Means& means, MatrixRef out, const Execution& execution) {
  check::same_size("X", means.cols(), "coef", model.coef.cols(), "columns");
  check::same_size("intercept", model.intercept.size(), "coef", model.coef.rows(), "problems");
  check_scores(model, means.rows(), out);
  means.check_once("X", execution);
  const Index n_problems = model.coef.rows();
  ScoreMemory memory(means.rows(), execution, means.scratch_size(score_block, std::max<Index>(2, n_problems)),
                     n_problems);
  for_each_block(means.rows(), execution, [&](const Rows& rows, int slot) {
    const auto thread = static_cast<std::size_t>(slot);
    auto f = memory.values[thread].leftCols(rows.count);
    if (means.sparse()) {
      means.multiply(rows, model.coef, f, memory.scratch[thread].data());
    } else {
      const ConstMatrixMap X = means.block(rows, memory.scratch[thread].data());
      for (Index i = 0; i < rows.count; ++i) {
        for (Index k = 0; k < n_problems; ++k) f(k, i) = score(X.row(i).data(), model.coef.row(k).data(), X.cols());
      }
    }
    out.middleRows(rows.begin, rows.count) = (f.colwise() + model.intercept).transpose();
  });
}

void decision_std(const LinearModel& model, const Covariances& covariances, MatrixRef out, const Execution& execution) {
  check::same_size("X", covariances.n_features(), "coef", model.coef.cols(), "columns");
  check_scores(model, covariances.n_samples(), out);
  covariances.check_once("covariances", execution);
  const Index n_problems = model.coef.rows();
  ScoreMemory memory(covariances.n_samples(), execution, covariances.scratch_size({score_block, n_problems}),
                     n_problems);
  for_each_block(covariances.n_samples(), execution, [&](const Rows& rows, int slot) {
    const auto thread = static_cast<std::size_t>(slot);
    auto variance = memory.values[thread].leftCols(rows.count);
    covariances.bilinear(rows, model.coef, model.coef, variance, memory.scratch[thread].data());
    out.middleRows(rows.begin, rows.count) = variance.array().max(0.0).sqrt().matrix().transpose();
  });
}

double side_probability(double mean, double std) {
  if (std::isnan(mean)) check::fail("mean", "is nan");
  if (!(std >= 0.0)) check::not_negative("std", std);
  if (std < smallest_spread) return mean > 0.0 ? 1.0 : (mean < 0.0 ? 0.0 : 0.5);
  const Ratio z = exact_ratio(mean, std);
  const bool below = z.value < 0.0;
  const double upper = normal_tail(below ? -z.value : z.value, below ? -z.error : z.error).upper;
  return below ? upper : 1.0 - upper;
}

}  // namespace halosvm
