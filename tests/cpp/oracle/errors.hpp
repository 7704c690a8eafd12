/// \file
/// The text of the error that a call ends with.
#pragma once

#include <stdexcept>
#include <string>

namespace oracle {

/// what() of the std::invalid_argument that \p call throws, or "" when it returns.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace oracle
