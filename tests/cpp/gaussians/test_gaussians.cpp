#include "halosvm/gaussians/gaussians.hpp"
#include "halosvm/gaussians/covariances/diagonal.hpp"
#include "halosvm/gaussians/covariances/zero.hpp"
#include "oracle/covariance_batches.hpp"
#include "oracle/errors.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <vector>

using halosvm::ArrayView;
using halosvm::Execution;
using halosvm::Gaussians;
using halosvm::Index;
using halosvm::ZeroCovariances;
using oracle::error_of;

namespace {

Gaussians certain(const double* means, Index n, Index d) {
  return {ArrayView(means, n, d), std::make_shared<ZeroCovariances>(n, d)};
}

}  // namespace

TEST_CASE("Gaussians are the caller's means and covariances") {
  const std::vector<double> means(6, 1.0);
  const auto covariances = std::make_shared<ZeroCovariances>(2, 3);
  const Gaussians data(ArrayView(means.data(), 2, 3), covariances);
  CHECK(data.n_samples() == 2);
  CHECK(data.n_features() == 3);
  CHECK(&data.covariances() == covariances.get());
  CHECK(data.means().block({1, 1}, nullptr).data() == means.data() + 3);
}

TEST_CASE("means and covariances of different shapes are refused with both sizes") {
  const double means[6] = {};
  const ArrayView view(means, 2, 3);
  CHECK(error_of([&] { Gaussians(view, std::make_shared<ZeroCovariances>(3, 3)); }) ==
        "covariances has 3 rows, means has 2");
  CHECK(error_of([&] { Gaussians(view, std::make_shared<ZeroCovariances>(2, 4)); }) ==
        "covariances has 4 columns, means has 3");
}

TEST_CASE("a block has 1 to 256 rows: as many as fit into 256 KiB, or up to 16 if those fit into 512 KiB") {
  const double wide[1] = {};
  const float narrow[1] = {};
  const auto block_rows = [&](Index d) {
    const ArrayView nothing(wide, 0, d);
    return Gaussians(nothing, std::make_shared<halosvm::DiagonalCovariances>(nothing)).block_rows();
  };
  CHECK(block_rows(1) == 256);
  for (const Index d : {40, 64, 100, 300}) {
    CAPTURE(d);
    CHECK(block_rows(d) * d * 16 <= 262144);
    CHECK((block_rows(d) + 1) * d * 16 > 131072);
  }
  CHECK(block_rows(1000) == 16);
  CHECK(block_rows(2048) == 16);
  CHECK(block_rows(4096) == 8);
  CHECK(block_rows(100000) == 1);
  CHECK(certain(wide, 0, 64).block_rows() == 256);
  CHECK(certain(wide, 0, 640).block_rows() == 51);
  CHECK(Gaussians(ArrayView(narrow, 0, 640), std::make_shared<ZeroCovariances>(0, 640)).block_rows() == 102);
}

TEST_CASE("a check accepts negative and large means and names the first that is not finite or overflows") {
  std::vector<double> means(3000, -1e150);
  const Gaussians data = certain(means.data(), 1000, 3);
  Execution execution;
  execution.n_threads = 2;
  const auto error = [&](double value) {
    means[17 * 3 + 2] = value;
    return error_of([&] { data.check("X", execution); });
  };
  CHECK(error(1e150).empty());
  means[2999] = -std::numeric_limits<double>::infinity();
  CHECK(error(std::numeric_limits<double>::quiet_NaN()) == "X row 17, column 2 is nan; it must be finite");
  CHECK(error(std::numeric_limits<double>::infinity()) == "X row 17, column 2 is inf; it must be finite");
  CHECK(error(-1e200) == "X row 17, column 2 is -1e+200; values beyond 1e+150 overflow: rescale");
  CHECK(error(0.0) == "X row 999, column 2 is -inf; it must be finite");
}
