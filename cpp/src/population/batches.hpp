/// \file
/// Measurements in batches made ready for many passes, and the E step of one batch. Private to populations.
#pragma once

#include "halosvm/population/batches.hpp"
#include "population/expectation.hpp"

namespace halosvm {

struct BatchedMeasurements::Prepared {
  /// Up to eight items of one batch and one class.
  struct Block {
    Index first;
    Index count;
    Index label;  ///< class, or -1: unknown
  };

  Prepared(const Gaussians& X, const double* given, const std::vector<Index>& batches,
           const std::vector<Index>& classes, bool summed, const Execution& execution);

  Index n_features() const { return measurements.prepared().n_features(); }
  Index n_batches() const { return static_cast<Index>(begins.size()) - 1; }
  /// Whether items are the means of several rows.
  bool grouped() const { return scatters.size() > 0; }

  Measurements measurements;
  bool labelled;
  // Of items: rows, or where these are few, all rows of one batch, class, pattern of missing values and error.
  std::vector<Index> rows;      ///< the first row of each
  std::vector<double> weights;  ///< sums of those of their rows
  Matrix means;                 ///< of several rows, n_items x d, 0 where missing
  Matrix scatters;              ///< about these, (n_items d) x d
  std::vector<Block> blocks;    ///< in the order of the batches
  std::vector<Index> begins;    ///< where the blocks of each batch begin, and the end

 private:
  void group(const std::vector<Index>& order, const std::vector<Index>& firsts);
};

namespace population {

/// One pass over the batches: the sums of the M step if they are wanted, and the offsets.
/// \param known what is known of the offsets without these rows, or null: N(0, W).
/// \param from offsets of an earlier pass, where the search for components and offsets starts, or empty.
void expect_batches(const Population& population, const BatchedMeasurements::Prepared& data, const BatchOffsets* known,
                    const BatchOffsets& from, bool statistics, Expectation& out, const Execution& execution);

/// The components of a class, all of them if it is -1: first and end.
std::pair<Index, Index> components_of(const Population& population, Index label);

}  // namespace population
}  // namespace halosvm
