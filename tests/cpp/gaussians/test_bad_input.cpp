#include "halosvm/halosvm.hpp"
#include "oracle/errors.hpp"
#include "oracle/no_numbers.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

using halosvm::ArrayView;
using halosvm::Covariances;
using halosvm::DiagonalCovariances;
using halosvm::Gaussians;
using halosvm::Index;
using halosvm::SparseView;
using oracle::error_of;
using oracle::not_a_number;
using oracle::refused;

namespace {

const double twelve[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
const double* const no_double = nullptr;
const float* const no_float = nullptr;

/// The numbers of other means or covariances, and how often they have been looked at.
class Counted final : public Covariances {
 public:
  Counted(std::shared_ptr<const Covariances> base, int& looks)
      : Covariances(base->n_samples(), base->n_features()), base_(std::move(base)), looks_(looks) {}
  const char* kind() const override { return base_->kind(); }
  bool certain() const override { return base_->certain(); }
  Index row_bytes() const override { return base_->row_bytes(); }
  Index scratch_size(const halosvm::BlockShape& shape) const override { return base_->scratch_size(shape); }
  void bilinear(const halosvm::Rows& rows, const halosvm::ConstMatrixRef& W, const halosvm::ConstMatrixRef& V,
                halosvm::MatrixRef out, double* scratch) const override {
    base_->bilinear(rows, W, V, out, scratch);
  }
  void add_weighted_products(const halosvm::Rows& rows, const halosvm::ConstMatrixRef& a,
                             const halosvm::ConstMatrixRef& W, halosvm::MatrixRef sum, double* scratch) const override {
    base_->add_weighted_products(rows, a, W, sum, scratch);
  }
  void products(const halosvm::Rows& rows, const halosvm::ConstVectorRef& w, halosvm::MatrixRef out,
                double* scratch) const override {
    base_->products(rows, w, out, scratch);
  }
  void add_weighted_matrices(const halosvm::Rows& rows, const halosvm::ConstVectorRef& a, halosvm::MatrixRef sum,
                             double* scratch) const override {
    base_->add_weighted_matrices(rows, a, sum, scratch);
  }
  void add_weighted_diagonals(const halosvm::Rows& rows, const halosvm::ConstVectorRef& a, halosvm::VectorRef sum,
                              double* scratch) const override {
    base_->add_weighted_diagonals(rows, a, sum, scratch);
  }
  void prefetch(Index row) const override { base_->prefetch(row); }
  void check(const std::string& argument, const halosvm::Execution& execution) const override {
    ++looks_;
    base_->check(argument, execution);
  }

 private:
  std::shared_ptr<const Covariances> base_;
  int& looks_;
};

}  // namespace

TEST_CASE("arrays of no memory or of negative shapes are refused, empty ones are not") {
  CHECK(refused([] { ArrayView(no_double, 2, 3); }) == "array");
  CHECK(refused([] { ArrayView(no_float, 2, 3); }) == "array");
  CHECK(refused([] { ArrayView(twelve, -1, 3); }) == "array");
  CHECK(refused([] { ArrayView(twelve, 1, -3); }) == "array");
  CHECK(ArrayView(no_double, 0, 3).empty());
}

TEST_CASE("sparse arrays of no memory, negative shapes or offsets that cannot be are refused") {
  const std::int32_t columns[] = {0, 2};
  const std::int32_t offsets[] = {0, 1, 2};
  const std::int32_t below[] = {-1, 1, 2};
  const std::int32_t back[] = {2, 1, 0};
  const std::int32_t* const none = nullptr;
  CHECK(refused([&] { SparseView(twelve, columns, none, 2, 3); }) == "offsets");
  CHECK(refused([&] { SparseView(twelve, columns, below, 2, 3); }) == "offsets");
  CHECK(refused([&] { SparseView(twelve, columns, back, 2, 3); }) == "offsets");
  CHECK(refused([&] { SparseView(no_double, columns, offsets, 2, 3); }) == "values");
  CHECK(refused([&] { SparseView(twelve, none, offsets, 2, 3); }) == "columns");
  CHECK(refused([&] { SparseView(twelve, columns, offsets, -2, 3); }) == "array");
  CHECK(halosvm::SparseMeans(SparseView()).rows_worth_a_vector() == 0);
}

TEST_CASE("covariances and Gaussians of nothing are refused by name") {
  const ArrayView view(twelve, 2, 3);
  const std::shared_ptr<const Covariances> none;
  CHECK(refused([&] { Gaussians(view, none); }) == "covariances");
  CHECK(refused([&] { Gaussians(std::shared_ptr<const halosvm::Means>(), halosvm::no_covariances(2, 3)); }) == "means");
  CHECK(refused([&] { halosvm::scaled_covariances(none, 1.0); }) == "covariances");
  CHECK(refused([&] { halosvm::in_norm(none, 2.0); }) == "covariances");
  CHECK(refused([&] { halosvm::NormSpread(none, 1.0); }) == "covariances");
  CHECK(refused([&] { halosvm::ColumnsCovariances(none, {0}, 2); }) == "covariances");
  CHECK(refused([&] { halosvm::no_covariances(-1, 2); }) == "covariances");
  CHECK(refused([&] { halosvm::low_rank_covariances(view, nullptr, 2, 3); }) == "offsets");
  for (const double factor : {-1.0, not_a_number, halosvm::infinity}) {
    CHECK(refused([&] { halosvm::scaled_covariances(halosvm::no_covariances(2, 3), factor); }) == "factor");
  }
  for (const double norm : {0.5, not_a_number}) {
    CHECK(refused([&] { halosvm::in_norm(halosvm::no_covariances(2, 3), norm); }) == "norm");
  }
}

TEST_CASE("mixtures of nothing are refused by name") {
  const Gaussians components(ArrayView(twelve, 4, 3), halosvm::no_covariances(4, 3));
  const Index offsets[] = {0, 2, 4};
  const double weights[] = {0.5, 0.5, 0.2, 0.8};
  const double wrong[] = {0.5, 0.5, not_a_number, 0.8};
  CHECK(refused([&] { halosvm::Mixtures(components, nullptr, 2, weights); }) == "offsets");
  CHECK(refused([&] { halosvm::Mixtures(components, offsets, 2, nullptr); }) == "weights");
  CHECK(refused([&] { halosvm::Mixtures(components, offsets, 2, wrong); }) == "weights");
  CHECK(refused([&] { halosvm::Mixtures(components, offsets, -1, weights); }) == "n_samples");
}

TEST_CASE("truncation refuses fractions beyond 0 and 1, bad numbers and outputs of nothing") {
  const DiagonalCovariances diagonal(ArrayView(twelve, 2, 3));
  const halosvm::FullCovariances full(ArrayView(twelve, 6, 2), 3);
  std::vector<std::uint8_t> kept(6);
  CHECK(refused([&] { halosvm::truncate_diagonal(diagonal, 0.5, nullptr, {}); }) == "kept");
  for (const double p : {0.0, 1.5, not_a_number}) {
    CHECK(refused([&] { halosvm::truncate_diagonal(diagonal, p, kept.data(), {}); }) == "p");
    CHECK(refused([&] { halosvm::truncate(full, p, {}); }) == "p");
  }
  CHECK(refused([&] { halosvm::truncate(full, 0.5, {}); }) == "covariances");  // which are not symmetric
}

TEST_CASE("numbers are looked at once for all calls, and not at all where the caller vouches for them") {
  int looks = 0;
  const ArrayView means(twelve, 2, 3);
  const auto stds = std::make_shared<DiagonalCovariances>(ArrayView(twelve, 2, 3, true));
  const std::int16_t codes[] = {0, 1};
  const auto fit = [&](const Gaussians& data) {
    const halosvm::LocalObjective objective(data, {codes, 1}, nullptr, 1.0,
                                            halosvm::make_loss(halosvm::loss_names().front()), true, {});
    const auto result = halosvm::minimize(objective, halosvm::LinearModel(1, 3), halosvm::BatchSettings());
    halosvm::Matrix out(2, 1);
    halosvm::decision_std(result.model, data.covariances(), out, {});
  };
  const Gaussians checked(means, std::make_shared<Counted>(stds, looks));
  fit(checked);
  fit(checked);
  CHECK(looks == 1);
  const Gaussians scaled(means, halosvm::scaled_covariances(checked.shared_covariances(), 2.0));
  fit(scaled);
  CHECK(looks == 1);
  const Gaussians vouched(means, std::make_shared<Counted>(stds, looks));
  vouched.assume_checked();
  fit(vouched);
  CHECK(looks == 1);
}
