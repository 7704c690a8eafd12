// What all kinds of covariances share.

#include "halosvm/gaussians/covariances.hpp"

#include "halosvm/core/check.hpp"

namespace halosvm {

void Covariances::root(Index row, Matrix& out) const {
  const Factors* known = factors();
  if (known == nullptr && !certain())
    check::fail("covariances", std::string("of the kind ") + kind() + " have no root");
  const Index rank = known == nullptr ? 0 : known->rank(row);
  out.resize(n_features(), rank);
  Vector scratch(scratch_size({1, 1}));
  Matrix column(1, n_features());
  for (Index k = 0; k < rank; ++k) {
    known->combine({row, 1}, Vector::Unit(rank, k), column, scratch.data());
    out.col(k) = column.row(0).transpose();
  }
}

}  // namespace halosvm
