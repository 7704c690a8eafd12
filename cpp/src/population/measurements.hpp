/// \file
/// Measurements made ready for many passes: rows that count, their weights, and cells of rows that share one
/// factorisation. Private to populations.
#pragma once

#include "halosvm/population/empirical_bayes.hpp"
#include "population/noise.hpp"

#include <vector>

namespace halosvm {

struct Measurements::Prepared {
  Prepared(const Gaussians& X, const double* given, const Execution& execution, const Limits& limits);

  /// Number of rows without limits; those with limits follow them.
  Index size() const { return n_plain; }
  Index n_rows() const { return static_cast<Index>(rows.size()); }
  Index n_limited() const { return n_rows() - n_plain; }
  Index n_features() const { return data.n_features(); }
  Index n_cells() const { return static_cast<Index>(cells.size()) - 1; }

  /// Means of the rows at positions begin ... begin + count - 1, count x n_features.
  ConstMatrixMap means(Index begin, Index count, double* scratch) const {
    return data.means().block({0, count, rows.data() + begin}, scratch);
  }

  Gaussians data;
  population::Noise noise;
  Limits limits;
  std::vector<Index> rows;      ///< those of a weight above 0; rows of one cell stand together if cells are shared
  std::vector<double> weights;  ///< of these rows
  Index n_plain = 0;
  double total_weight = 0.0;
  bool any_missing = false;
  /// Positions where the cells begin, and the end. A cell has one pattern of missing values and equal errors.
  std::vector<Index> cells;
  /// Whether cells are few enough for a factorisation of each to pay; otherwise there are none.
  bool shared = false;
  /// Weight, mean and scatter about it of each cell (0 where values are missing), if they take no more memory than the
  /// data: all that one component needs to know.
  Vector cell_weights;
  Matrix cell_means;
  Matrix cell_scatters;

 private:
  void sum_cells(const Execution& execution);
  void find_cells(const Execution& execution);
};

namespace population {

/// there(j) = 1 where x(j) is a number.
inline void mark_present(const double* x, Index d, unsigned char* there) {
  for (Index j = 0; j < d; ++j) there[j] = static_cast<unsigned char>(x[j] == x[j]);
}

}  // namespace population
}  // namespace halosvm
