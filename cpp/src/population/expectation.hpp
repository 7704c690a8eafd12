/// \file
/// The E step: a population and measurements enter, the sums that the M step needs leave. One engine for each way that
/// examples can share work. Private to populations.
#pragma once

#include "population/measurements.hpp"
#include "population/symmetric.hpp"

#include <vector>

namespace halosvm {

/// Sums over batches. The offset of a batch is o = C u with W = C C', u ~ N(mean, G^-1), G = I + C'A C and A the sum of
/// its T_i^-1; a = W^-1 o is the sum of its T_i^-1 (x_i - m - o).
struct OffsetSums {
  double count = 0.0;  ///< number of batches
  Matrix root;         ///< C
  Vector latent;       ///< sum of the means of u
  Matrix second;       ///< sum E u u'
  Matrix rise;         ///< sum a u' - A C G^-1: the slope of the log likelihood in C
  Vector precision;    ///< sum of the diagonals of (A^-1 + W)^-1
  Vector excess;       ///< sum of the diagonals of a a' - (A^-1 + W)^-1

  void reset(const Matrix& C);
  void add(const OffsetSums& other);
};

/// Sums over rows, of weight c_i r_ik, for each of k components with d features and h factors. The posterior of the
/// true value is N(m + u, B), w = T^-1 (x - m), u = V R'w; z are the factors of a component, v = m + L z + rest.
struct Statistics {
  double log_likelihood = 0.0;  ///< sum c_i log p(x_i)
  Vector mass;                  ///< sum of the weights, k
  Matrix precision;             ///< sum of the diagonals of T^-1, of factors those of (T - L L')^-1, k x d
  // Of the engines that factorise T.
  Matrix pull;       ///< sum w, k x d
  Matrix curvature;  ///< sum w w' - T^-1, (k d) x d
  // Of the engine for diagonal errors and V = L L' + diag.
  Matrix shift;   ///< sum u, k x d
  Matrix spread;  ///< sum of the diagonals of u u' + B, k x d
  Matrix latent;  ///< sum E z, k x h
  Matrix cross;   ///< sum E (v - m) z', (k d) x h
  Matrix square;  ///< sum E z z', (k h) x h
  OffsetSums offsets;

  void reset(Index k, Index d, Index h, bool factorised);
  void add(const Statistics& other);
  /// Takes over the sums of a part of the components, of which \p first is the first.
  void place(Index first, const Statistics& part);
};

namespace population {

/// What an E step is to deliver besides the sum of the logarithms.
struct Request {
  bool statistics = false;
  double* log_density = nullptr;       ///< by row of the data
  double* responsibilities = nullptr;  ///< rows of the data x k
};

/// Where arithmetic ends: V_k + S_i is singular, or row i is so far from all components that its density is 0.
struct Failure {
  Index row = -1;
  Index component = -1;  ///< -1: the density
  bool any() const { return row >= 0; }
  /// The first of both that is one, by the order in which they are merged.
  void merge(const Failure& other) {
    if (!any()) *this = other;
  }
  [[noreturn]] void raise() const;
};

struct Expectation {
  Statistics sums;
  BatchOffsets offsets;  ///< of batches, if rows belong to any
  Failure failure;
};

/// One pass over the data. \p out is reused from pass to pass.
void expect(const Population& population, const Measurements::Prepared& data, const Request& request, Expectation& out,
            const Execution& execution);

/// One pass over the examples of each class, which come from the components of that class alone; sums only.
void expect(const Population& population, const std::vector<const Measurements::Prepared*>& classes, Expectation& out,
            const Execution& execution);

/// T is V + S with a row of the identity for each missing value; eight rows at a time, each with its own T.
void expect_lanes(const Population& population, const Measurements::Prepared& data, const Request& request,
                  std::vector<Expectation>& parts, const Execution& execution);
/// One T for all rows of a cell.
void expect_cells(const Population& population, const Measurements::Prepared& data, const Request& request,
                  std::vector<Expectation>& parts, const Execution& execution);
/// Diagonal errors and V = L L' + diag or diag: no T at all.
void expect_latent(const Population& population, const Measurements::Prepared& data, const Request& request,
                   std::vector<Expectation>& parts, const Execution& execution);

/// Whether \ref expect_latent serves this population.
inline bool is_latent(const Population& population, const Measurements::Prepared& data) {
  return population.kind != PopulationKind::full && data.noise.diagonal();
}

/// The logarithms log a_k.
Vector log_weights(const Population& population);

/// Turns joint log densities, a row for each of the given places of the data, into responsibilities times weights;
/// delivers what the request asks of them. False, with the failure, at a row whose density is 0.
bool weigh(const Measurements::Prepared& data, const Request& request, const Rows& places, MatrixRef joint,
           Expectation& out);

}  // namespace population
}  // namespace halosvm
