// Matrices as text.

#include "oracle/printing.hpp"

#include <sstream>

namespace doctest {

String StringMaker<halosvm::Matrix>::convert(const halosvm::ConstMatrixRef& matrix) {
  std::ostringstream text;
  text << matrix;
  return text.str().c_str();
}

}  // namespace doctest
