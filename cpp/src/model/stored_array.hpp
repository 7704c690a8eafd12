/// \file
/// Arrays of model files: JSON comes in, in any of the forms that Python writes, numbers and their shape go out.
#pragma once

#include "halosvm/gaussians/array_view.hpp"
#include "model/json_reader.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace halosvm::record {

/// Finite numbers of one type, row-major, and where in the text they stand.
struct Array {
  std::string name;             ///< in messages
  std::size_t place = 0;        ///< in the text
  std::vector<Index> shape;     ///< empty where there is no array
  std::vector<double> numbers;  ///< one of the three holds them
  std::vector<float> singles;   ///< likewise
  std::vector<Index> integers;  ///< likewise

  bool given() const { return !shape.empty(); }
  /// The floating numbers as rows of a matrix.
  ArrayView view(Index rows, Index cols, bool squared = false) const;
};

/// Reads one: lists of lists; or type, shape, and values or their bytes in base64; or columns of a matrix.
/// \throws std::invalid_argument with place and name.
Array read_array(JsonReader& reader, const std::string& name);

}  // namespace halosvm::record
