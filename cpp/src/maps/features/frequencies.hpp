/// \file
/// What the files of Fourier features share. Private to the maps.
#pragma once

#include "halosvm/maps/fourier.hpp"

namespace halosvm::maps {

/// Rows of a block, a multiple of the lanes, for which \p vectors numbers for each frequency and row stay in the cache.
Index block_rows_of(Index n_frequencies, Index vectors);

/// Throws unless the map has the features of X, and a frequency.
void check_map(const FourierMap& map, const Gaussians& X, const Execution& execution);

}  // namespace halosvm::maps
