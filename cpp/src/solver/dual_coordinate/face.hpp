/// \file
/// The dual on the face of the variables between their bounds: where the walk stands comes in, a direction in which
/// conjugate gradients lead down goes out. Private to the dual coordinate method.
#pragma once

#include "halosvm/objective/local_objective.hpp"

#include <vector>

namespace halosvm {

/// min over p of p'K p / 2 - r'p with K_ij = y_i y_j (x_i'x_j + pull) + h_i [i = j], preconditioned by its diagonal.
class Face {
 public:
  /// \param rows of the data. \param signs y_i, \p bends h_i and \p diagonal K_ii, one for each row.
  Face(const LocalObjective& problem, const std::vector<Index>& rows, const Vector& signs, Vector bends,
       const Vector& diagonal, double pull);

  /// Takes \p steps steps of conjugate gradients, or fewer if less than \p enough of |r| is left.
  /// \param r of the size of the face; \p w of the number of features is memory.
  Vector solve(Vector r, Index steps, double enough, Vector& w, Checkpoint& checkpoint) const;

  /// w += sum_i p_i y_i x_i.
  void add(const Vector& p, VectorRef w) const;
  /// out_i = y_i x_i'w.
  void scores(const Vector& w, Vector& out) const;
  /// Rows read by all of these.
  double rows_read() const { return rows_read_; }

 private:
  const LocalObjective& problem_;
  const std::vector<Index>& rows_;
  const Vector& signs_;
  Vector bends_;
  const Vector& diagonal_;
  double pull_;
  Index block_;
  mutable Vector scratch_;
  mutable double rows_read_ = 0.0;
};

}  // namespace halosvm
